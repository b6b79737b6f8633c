"""Ray: batch inference and tuning on two workers, one of which is killed.

Those that start a cluster, which takes half a minute, run where TILEWRIGHT_TEST_RAY is set and Ray is
installed.
"""

from __future__ import annotations

import os
import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tilewright

starts_a_cluster = pytest.mark.skipif(
    not os.environ.get("TILEWRIGHT_TEST_RAY"), reason="TILEWRIGHT_TEST_RAY is not set"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU each, beside a head without any."""
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster

    path = str(pathlib.Path(tilewright.__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join([path, str(pathlib.Path(__file__).parent)])
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    made.add_node(num_cpus=1)
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


class Recorded:
    """Says in a file which rows it ran; ends its own process once, in the middle."""

    def __init__(self, executable: Any, folder: str) -> None:
        from tilewright.ray import Predictor

        self.predictor = Predictor(executable, {"image": "images"})
        self.folder = pathlib.Path(folder)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        killed = self.folder / "killed"
        if 300 in batch["row"]:
            try:
                killed.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(1)
        return self.predictor(batch)


@starts_a_cluster
def test_batches_of_a_killed_worker_run_again_and_none_twice(
    cluster: Any, digits: str, tmp_path: pathlib.Path
) -> None:
    import ray

    exe = tilewright.load(digits, dims={"N": 64}).compile(threads=1)
    images = np.random.default_rng(0).random((1000, 1, 8, 8), dtype=np.float32)
    rows = [{"row": k, "images": images[k]} for k in range(1000)]
    data = ray.data.from_items(rows, override_num_blocks=16)
    done = data.map_batches(
        Recorded,
        fn_constructor_args=(ray.put(exe), str(tmp_path)),
        batch_size=64,
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=1,
    )
    got = {}
    count = 0
    for row in done.iter_rows():
        got[int(row["row"])] = row["logits"]
        count += 1
    assert (tmp_path / "killed").exists()
    assert count == 1000
    assert sorted(got) == list(range(1000))
    whole = tilewright.load(digits, dims={"N": 1000}).compile()(images)[0]
    np.testing.assert_allclose(np.stack([got[k] for k in range(1000)]), whole, rtol=1e-4, atol=1e-5)


def test_columns_that_are_no_input_stay(digits: str) -> None:
    pytest.importorskip("ray")
    from tilewright.ray import Predictor

    predictor = Predictor(tilewright.load(digits, dims={"N": 4}).compile(threads=1), {"image": "pixels"})
    batch = {"pixels": np.ones((3, 1, 8, 8), np.float32), "id": np.array([7, 8, 9])}
    made = predictor(batch)
    assert list(made) == ["id", "logits", "probabilities"]
    assert made["id"].tolist() == [7, 8, 9]
    assert made["logits"].shape == (3, 10)
    with pytest.raises(tilewright.InputError, match="no column `pixels` for input `image`: there are id"):
        predictor({"id": batch["id"]})
    with pytest.raises(tilewright.InputError, match="`logits` is a column that is no input, and an output"):
        predictor({**batch, "logits": batch["id"]})


@starts_a_cluster
def test_a_lost_node_loses_only_what_it_was_measuring(
    cluster: Any, digits: str, tmp_path: pathlib.Path
) -> None:
    module = tilewright.load(digits, dims={"N": 16})
    file = tmp_path / "tuning.sqlite"
    told: list[str] = []
    extra = cluster.add_node(num_cpus=1)

    def lose() -> None:
        while len(told) < 4:
            time.sleep(0.05)
        cluster.remove_node(extra, allow_graceful=False)

    thread = threading.Thread(target=lose)
    thread.start()
    done = tilewright.tune(
        module,
        budget=150,
        threads=1,
        file=file,
        ray=True,
        whole=False,
        progress=lambda what, *_: told.append(what),
    )
    thread.join()
    assert done.measured == done.candidates
    assert done.new == done.candidates
    assert done.failures == ()
    # What the lost node was measuring was begun twice, and nothing else.
    assert 0 <= len(told) - done.candidates <= 2
    again = tilewright.tune(module, budget=1, threads=1, file=file, whole=False)
    assert again.new == 0
