#!/usr/bin/env python3
"""Checks Tilewright on what scikit-learn and LightGBM export, against ONNX Runtime.

    classical.py [--only SUBSTRING] [--binary PROGRAM] [--time]

Trains small models of random data and exports them with skl2onnx and onnxmltools: trees, forests, boosted
trees with and without missing values, linear models, support vector machines and what prepares features.
Each is run at a batch that is given and at an open one. `--time` compares one thread with ONNX Runtime's.
"""

import argparse
import sys
import time

import environment
import python_environment

if __name__ == "__main__":
    python_environment.enter(
        environment.HERE,
        [*environment.REQUIREMENTS, (environment.HERE / "requirements-classical.txt", [])],
    )

import numpy as np
import onnx
import onnxruntime
import sklearn.base
from skl2onnx import to_onnx

import harness

ROWS = (1, 16, 333)
FEATURES = 11
RTOL, ATOL = 1e-4, 1e-5


def data(seed=0, rows=600, missing=False):
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, FEATURES)).astype(np.float32)
    score = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.3 * x[:, 3]
    if missing:
        x[random.random(x.shape) < 0.1] = np.nan
    return x, score


def classes(score, count):
    return np.digitize(score, np.quantile(score, np.arange(1, count) / count))


def plain(model):
    """With scores as a matrix, and not as maps."""
    return {id(model): {"zipmap": False}} if sklearn.base.is_classifier(model) else {}


def exported(model, x, **more):
    return to_onnx(model, x[:1], options=plain(model), target_opset={"": 18, "ai.onnx.ml": 3}, **more)


def scikit():
    """Names, and what makes each model with the rows that it is run on."""
    from sklearn import ensemble, linear_model, neural_network, pipeline, preprocessing, svm, tree
    from sklearn.impute import SimpleImputer
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    def regression(name, model):
        x, score = data()
        return name, lambda: exported(model.fit(x, score), x), x

    def classification(name, model, count, labels=None):
        x, score = data()
        y = classes(score, count)
        y = y if labels is None else np.array(labels)[y]
        return f"{name}-{count}", lambda: exported(model.fit(x, y), x), x

    small = dict(n_estimators=30, random_state=0)
    yield regression("tree", tree.DecisionTreeRegressor(random_state=0))
    yield regression("forest", ensemble.RandomForestRegressor(**small))
    yield regression("extra", ensemble.ExtraTreesRegressor(max_depth=6, **small))
    yield regression("boosted", ensemble.GradientBoostingRegressor(**small))
    yield regression("histograms", ensemble.HistGradientBoostingRegressor(max_iter=30))
    yield regression("ridge", linear_model.Ridge())
    yield regression("svr", svm.SVR())
    yield regression("svr-poly", svm.SVR(kernel="poly"))
    yield regression("network", neural_network.MLPRegressor(hidden_layer_sizes=(13, 7), max_iter=50))
    yield regression("scaled", pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression()))
    for count in (2, 3):
        yield classification("tree", tree.DecisionTreeClassifier(random_state=0), count)
        yield classification("forest", ensemble.RandomForestClassifier(**small), count)
        yield classification("boosted", ensemble.GradientBoostingClassifier(**small), count)
        yield classification("histograms", ensemble.HistGradientBoostingClassifier(max_iter=20), count)
        yield classification("logistic", linear_model.LogisticRegression(max_iter=300), count)
        yield classification("sgd", linear_model.SGDClassifier(random_state=0), count)
        yield classification("linear-svc", svm.LinearSVC(), count)
        yield classification("svc", svm.SVC(), count)
        yield classification("svc-probability", svm.SVC(probability=True, random_state=0), count)
        yield classification("bayes", GaussianNB(), count)
        yield classification("neighbours", KNeighborsClassifier(), count)
        yield classification("network", neural_network.MLPClassifier(hidden_layer_sizes=(9,), max_iter=50), count)
    words = ["no", "yes", "perhaps"]
    yield classification("forest-words", ensemble.RandomForestClassifier(**small), 3, words)
    yield classification("logistic-words", linear_model.LogisticRegression(max_iter=300), 3, words)
    yield classification("bayes-words", GaussianNB(), 3, words)
    for kind in ("max", "l1", "l2"):
        yield regression(f"normalizer-{kind}", pipeline.make_pipeline(preprocessing.Normalizer(kind), linear_model.Ridge()))
    yield regression("min-max", pipeline.make_pipeline(preprocessing.MinMaxScaler(), linear_model.Ridge()))
    yield regression("binarizer", pipeline.make_pipeline(preprocessing.Binarizer(threshold=0.2), linear_model.Ridge()))
    yield regression("bins", pipeline.make_pipeline(preprocessing.KBinsDiscretizer(4, encode="onehot-dense"), linear_model.Ridge()))
    x, score = data(missing=True)
    imputed = pipeline.make_pipeline(SimpleImputer(), linear_model.Ridge())
    yield "imputed", lambda: exported(imputed.fit(x, score), x), x
    missing = ensemble.HistGradientBoostingRegressor(max_iter=30)
    yield "histograms-missing", lambda: exported(missing.fit(x, score), x), x


def lightgbm_models():
    import lightgbm
    from onnxmltools import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType as Floats

    def made(model, x, y):
        model.fit(x, y)
        return convert_lightgbm(model, initial_types=[("X", Floats([None, FEATURES]))], zipmap=False, target_opset=15)

    small = dict(n_estimators=40, verbose=-1)
    for missing in (False, True):
        x, score = data(missing=missing)
        tail = "-missing" if missing else ""
        yield f"lightgbm{tail}", lambda x=x, y=score: made(lightgbm.LGBMRegressor(**small), x, y), x
        for count in (2, 4):
            y = classes(score, count)
            yield f"lightgbm{tail}-{count}", lambda x=x, y=y: made(lightgbm.LGBMClassifier(**small), x, y), x
        for objective in ("poisson", "quantile"):
            model = lightgbm.LGBMRegressor(objective=objective, **small)
            yield f"lightgbm-{objective}{tail}", lambda m=model, x=x, y=score: made(m, x, np.exp(y)), x


def expected(model, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = {session.get_inputs()[0].name: x}
    names = [o.name for o in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, feed)))
    times = []
    while sum(times) < 0.3:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return outputs, min(times)


def as_text(value):
    """Strings from their bytes along the last axis."""
    return np.array([bytes(row).rstrip(b"\0").decode() for row in value.reshape(-1, value.shape[-1])])


def judge(program, name, model, x, timed):
    folder = environment.WORK / "classical" / name
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    said, ratio = [], None
    for rows in ROWS:
        want, seconds = expected(model, x[:rows])
        harness.save_npz(folder / "in.npz", {model.graph.input[0].name: x[:rows]})
        for options in ((), ("--open",)):
            done = harness.run(
                program, folder / "model.onnx", folder / "in.npz", threads=1,
                timed=timed and not options, options=options,
            )
            if done.status != "ok":
                said.append(f"{rows} rows {' '.join(options)}: {done.status}: {done.reason}")
                continue
            if done.run_seconds and rows == ROWS[-1]:
                ratio = done.run_seconds / seconds
            for key, value in want.items():
                value, got = np.asarray(value), done.outputs.get(key)
                if got is None:
                    said.append(f"{rows} rows: no output {key}")
                elif value.dtype.kind in "OU":
                    if as_text(got).tolist() != value.astype(str).ravel().tolist():
                        said.append(f"{rows} rows: {key} differs")
                else:
                    found = harness.difference(got, value, RTOL, ATOL)
                    if found.problem:
                        said.append(f"{rows} rows {' '.join(options)}: {key}: {found.problem}")
    return said, ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--binary")
    parser.add_argument("--time", action="store_true")
    arguments = parser.parse_args()
    program = environment.binary(arguments.binary)
    bad = 0
    for cases in (scikit(), lightgbm_models()):
        for name, make, x in cases:
            if arguments.only not in name:
                continue
            try:
                model = make()
            except Exception as error:  # an exporter that cannot is no fault of ours
                print(f"skip  {name}: {str(error).splitlines()[0][:120]}", flush=True)
                continue
            said, ratio = judge(program, name, model, x, arguments.time)
            bad += bool(said)
            tail = f"  {ratio:.2f} of ONNX Runtime's time" if ratio else ""
            print(f"{'no' if said else 'ok':5} {name}{tail}", *said[:3], sep="\n      " if said else "", flush=True)
    print(f"{bad} differ or were refused")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
