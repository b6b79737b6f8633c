#!/usr/bin/env python3
"""Trains the digits model and writes it as ONNX, with test data beside it.

The network is small, and none of its sizes fits a vector register on purpose:

    image [N, 1, 8, 8]
      conv 3x3, pad 1            -> [N, 13, 8, 8]   batch norm, relu
      conv 3x3, pad 1, stride 2  -> [N, 27, 4, 4]   batch norm, relu
      max pool 2x2, stride 1     -> [N, 27, 3, 3]
      flatten, gemm 243 -> 37, relu, gemm 37 -> 10  -> logits
      softmax                                       -> probabilities

Training is plain numpy: every layer has a `forward` and a `backward`, and a
convolution is a matrix product over patches (im2col). Layers keep images as
[N, H, W, C], so that this product needs no transposition; the ONNX model has
the usual [N, C, H, W].

Run it without arguments to rewrite the files beside it, or with `--out DIR`.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 3e-3
TEST_SHARE = 0.2
SAVED_IMAGES = 97  # how many held-out images are written; prime, as a batch size may be
OPSET = 17


def patches(x, kernel, stride, pad):
    """[N, H, W, C] to [N, OH, OW, kernel * kernel * C], zeros outside the image."""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(1, 2))
    view = view[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
    return view.reshape(*view.shape[:3], -1)


def scatter_patches(grad, shape, kernel, stride, pad):
    """The transpose of `patches`: adds every patch back to where it came from."""
    n, height, width, channels = shape
    rows, cols = grad.shape[1:3]
    grad = grad.reshape(n, rows, cols, kernel, kernel, channels)
    full = np.zeros((n, height + 2 * pad, width + 2 * pad, channels), grad.dtype)
    for y in range(kernel):
        for x in range(kernel):
            full[:, y : y + stride * rows : stride, x : x + stride * cols : stride] += grad[
                :, :, :, y, x
            ]
    return full[:, pad : pad + height, pad : pad + width]


class Layer:
    """A step of the network. `weights` are trained, `grads` belong to them."""

    def __init__(self):
        self.weights, self.grads = {}, {}


class Linear(Layer):
    """x @ w + b over the last axis, He-initialised."""

    def __init__(self, rng, inputs, outputs):
        super().__init__()
        scale = np.sqrt(2.0 / inputs)
        self.weights["w"] = (rng.standard_normal((inputs, outputs)) * scale).astype(np.float32)
        self.weights["b"] = np.zeros(outputs, np.float32)

    def forward(self, x, training):
        self.x = x
        return x @ self.weights["w"] + self.weights["b"]

    def backward(self, grad):
        flat = grad.reshape(-1, grad.shape[-1])
        self.grads["w"] = self.x.reshape(-1, self.x.shape[-1]).T @ flat
        self.grads["b"] = flat.sum(0)
        return grad @ self.weights["w"].T


class Conv(Layer):
    """A square convolution: a `Linear` over patches, whose weights it shares."""

    def __init__(self, rng, inputs, outputs, kernel, stride, pad):
        super().__init__()
        self.linear = Linear(rng, inputs * kernel * kernel, outputs)
        self.weights, self.grads = self.linear.weights, self.linear.grads
        self.inputs, self.kernel, self.stride, self.pad = inputs, kernel, stride, pad

    def forward(self, x, training):
        self.shape = x.shape
        return self.linear.forward(patches(x, self.kernel, self.stride, self.pad), training)

    def backward(self, grad):
        return scatter_patches(
            self.linear.backward(grad), self.shape, self.kernel, self.stride, self.pad
        )

    def onnx_weight(self):
        """[outputs, inputs, kernel, kernel]"""
        w = self.weights["w"].reshape(self.kernel, self.kernel, self.inputs, -1)
        return np.ascontiguousarray(w.transpose(3, 2, 0, 1))


class BatchNorm(Layer):
    """Normalises each channel (the last axis) by its statistics over the batch."""

    EPSILON, MOMENTUM = 1e-5, 0.9

    def __init__(self, channels):
        super().__init__()
        self.weights["scale"] = np.ones(channels, np.float32)
        self.weights["bias"] = np.zeros(channels, np.float32)
        self.mean = np.zeros(channels, np.float32)
        self.var = np.ones(channels, np.float32)

    def forward(self, x, training):
        axes = tuple(range(x.ndim - 1))
        if training:
            mean, var = x.mean(axes), x.var(axes)
            keep = self.MOMENTUM
            self.mean = keep * self.mean + (1 - keep) * mean
            self.var = keep * self.var + (1 - keep) * var
        else:
            mean, var = self.mean, self.var
        self.inv_std = 1.0 / np.sqrt(var + self.EPSILON)
        self.normal = (x - mean) * self.inv_std
        return self.normal * self.weights["scale"] + self.weights["bias"]

    def backward(self, grad):
        axes = tuple(range(grad.ndim - 1))
        self.grads["bias"] = grad.sum(axes)
        self.grads["scale"] = (grad * self.normal).sum(axes)
        inner = grad * self.weights["scale"]
        return self.inv_std * (
            inner - inner.mean(axes) - self.normal * (inner * self.normal).mean(axes)
        )


class Relu(Layer):
    def forward(self, x, training):
        self.on = x > 0
        return x * self.on

    def backward(self, grad):
        return grad * self.on


class MaxPool(Layer):
    """A square pool without padding. Of equal maxima, the first takes the gradient."""

    def __init__(self, kernel, stride):
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x, training):
        self.shape = x.shape
        windows = patches(x, self.kernel, self.stride, 0)
        windows = windows.reshape(*windows.shape[:3], self.kernel * self.kernel, x.shape[-1])
        self.best = windows.argmax(3)[:, :, :, None]
        return np.take_along_axis(windows, self.best, 3)[:, :, :, 0]

    def backward(self, grad):
        windows = np.zeros((*grad.shape[:3], self.kernel * self.kernel, grad.shape[-1]), grad.dtype)
        np.put_along_axis(windows, self.best, grad[:, :, :, None], 3)
        return scatter_patches(windows, self.shape, self.kernel, self.stride, 0)


class Flatten(Layer):
    """[N, H, W, C] to [N, C * H * W]: the order that ONNX's Flatten gives [N, C, H, W]."""

    def forward(self, x, training):
        self.shape = x.shape
        return x.transpose(0, 3, 1, 2).reshape(len(x), -1)

    def backward(self, grad):
        n, height, width, channels = self.shape
        return grad.reshape(n, channels, height, width).transpose(0, 2, 3, 1)


class Network:
    """The layers in order, each with the name that it has in the ONNX model."""

    def __init__(self, rng):
        self.layers = {
            "conv1": Conv(rng, 1, 13, kernel=3, stride=1, pad=1),
            "norm1": BatchNorm(13),
            "relu1": Relu(),
            "conv2": Conv(rng, 13, 27, kernel=3, stride=2, pad=1),
            "norm2": BatchNorm(27),
            "relu2": Relu(),
            "pool": MaxPool(kernel=2, stride=1),
            "flatten": Flatten(),
            "hidden": Linear(rng, 27 * 3 * 3, 37),
            "relu3": Relu(),
            "classes": Linear(rng, 37, 10),
        }

    def forward(self, images, training=False):
        """Images [N, 1, 8, 8] to logits [N, 10]."""
        x = images.transpose(0, 2, 3, 1)
        for layer in self.layers.values():
            x = layer.forward(x, training)
        return x

    def backward(self, grad):
        for layer in reversed(self.layers.values()):
            grad = layer.backward(grad)


class Adam:
    """Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), algorithm 1."""

    def __init__(self, layers):
        self.layers, self.step = list(layers), 0
        self.first = [{k: np.zeros_like(w) for k, w in l.weights.items()} for l in self.layers]
        self.second = [{k: np.zeros_like(w) for k, w in l.weights.items()} for l in self.layers]

    def update(self, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.step += 1
        for layer, first, second in zip(self.layers, self.first, self.second):
            for key, weight in layer.weights.items():
                grad = layer.grads[key]
                first[key] += (1 - beta1) * (grad - first[key])
                second[key] += (1 - beta2) * (grad * grad - second[key])
                mean = first[key] / (1 - beta1**self.step)
                square = second[key] / (1 - beta2**self.step)
                weight -= (rate * mean / (np.sqrt(square) + epsilon)).astype(np.float32)


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def moved(rng, images):
    """Each image shifted by up to one pixel each way, zeros moving in."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty_like(images)
    for i, (dy, dx) in enumerate(rng.integers(0, 3, (len(images), 2))):
        out[i] = padded[i, :, dy : dy + 8, dx : dx + 8]
    return out


def train(rng, images, labels):
    """A trained network. The learning rate falls to zero along half a cosine."""
    network = Network(rng)
    adam = Adam(network.layers.values())
    batches = len(images) // BATCH
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        loss = 0.0
        for i in range(batches):
            pick = order[i * BATCH : (i + 1) * BATCH]
            probabilities = softmax(network.forward(moved(rng, images[pick]), training=True))
            rows = np.arange(len(pick))
            loss -= np.log(probabilities[rows, labels[pick]] + 1e-12).mean()
            grad = probabilities
            grad[rows, labels[pick]] -= 1
            network.backward(grad / len(pick))
            progress = (epoch * batches + i) / (EPOCHS * batches)
            adam.update(LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * progress)))
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss / batches:.4f}")
    return network


def to_onnx(network):
    """The network as an ONNX model with a symbolic batch `N`."""
    layers = network.layers
    weights, nodes = [], []

    def weight(name, value):
        weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def conv(name, x):
        layer = layers[name]
        inputs = [x, weight(f"{name}.w", layer.onnx_weight())]
        inputs.append(weight(f"{name}.b", layer.weights["b"]))
        return node(
            "Conv",
            inputs,
            name,
            kernel_shape=[layer.kernel] * 2,
            strides=[layer.stride] * 2,
            pads=[layer.pad] * 4,
        )

    def batch_norm(name, x):
        layer = layers[name]
        values = {"mean": layer.mean, "var": layer.var, **layer.weights}
        inputs = [weight(f"{name}.{key}", values[key]) for key in ("scale", "bias", "mean", "var")]
        return node("BatchNormalization", [x, *inputs], name, epsilon=layer.EPSILON)

    def gemm(name, x, output):
        layer = layers[name]
        inputs = [x, weight(f"{name}.w", layer.weights["w"].T), weight(f"{name}.b", layer.weights["b"])]
        return node("Gemm", inputs, output, transB=1)

    x = node("Relu", [batch_norm("norm1", conv("conv1", "image"))], "relu1")
    x = node("Relu", [batch_norm("norm2", conv("conv2", x))], "relu2")
    pool = layers["pool"]
    x = node("MaxPool", [x], "pool", kernel_shape=[pool.kernel] * 2, strides=[pool.stride] * 2)
    x = node("Flatten", [x], "flatten", axis=1)
    x = node("Relu", [gemm("hidden", x, "hidden")], "relu3")
    logits = gemm("classes", x, "logits")
    node("Softmax", [logits], "probabilities", axis=1)

    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10]),
        ],
        weights,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="digits/train.py"
    )
    model.ir_version = 8  # the version of opset 17's time, so that older readers take it
    onnx.checker.check_model(model, full_check=True)
    return model


def outside_answer(path, images):
    """What ONNX Runtime computes, or None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"image": images})))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    images = (digits.images[:, None] / 16.0).astype(np.float32)
    split = train_test_split(
        images, digits.target, test_size=TEST_SHARE, random_state=SEED, stratify=digits.target
    )
    train_images, test_images, train_labels, test_labels = split
    network = train(np.random.default_rng(SEED), train_images, train_labels)

    model_path = out / "digits.onnx"
    model_path.write_bytes(to_onnx(network).SerializeToString(deterministic=True))

    logits = network.forward(test_images)
    own = {"logits": logits, "probabilities": softmax(logits)}
    expected = outside_answer(model_path, test_images)
    if expected is None:
        print("ONNX Runtime is not installed: the expected outputs are numpy's")
        expected = own
    else:
        worst = max(np.abs(expected[k] - own[k]).max() / np.abs(own[k]).max() for k in own)
        print(f"numpy and ONNX Runtime differ by at most {worst:.1e} of the largest value")
        if worst > 1e-4:
            raise SystemExit("the exported model does not compute what was trained")

    saved = slice(0, SAVED_IMAGES)
    np.savez(out / "test_inputs.npz", image=test_images[saved])
    np.savez(
        out / "test_expected.npz", **{k: v[saved].astype(np.float32) for k, v in expected.items()}
    )
    np.savez(out / "test_labels.npz", label=test_labels[saved].astype(np.int64))

    for name, part in (("all held-out", slice(None)), ("the saved", saved)):
        right = expected["logits"][part].argmax(1) == test_labels[part]
        print(f"{name} images: {right.sum()} of {right.size} right, {100 * right.mean():.1f} %")
    print(f"{model_path.name}: {model_path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
