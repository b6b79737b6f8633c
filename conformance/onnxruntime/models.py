"""Stand-ins for the model files that ONNX Runtime's tests read, where its sources come without them.

Each has the inputs, outputs and values that the tests name; they are written here from that.
"""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
SIX = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
tensor = helper.make_tensor_value_info
node = helper.make_node


def model(nodes, inputs, outputs, weights=(), properties=(), opset=13):
    given = [numpy_helper.from_array(array, name) for name, array in dict(weights).items()]
    graph = helper.make_graph(nodes, "stand_in", inputs, outputs, given)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(made, dict(properties))
    return made


def sequence(name, kind):
    return helper.make_tensor_sequence_value_info(name, kind, None)


def product(**more):
    weight = tensor("W", FLOAT, [3, 2])
    return model(
        [node("Mul", ["X", "W"], ["Y"])],
        [tensor("X", FLOAT, [3, 2]), weight],
        [tensor("Y", FLOAT, [3, 2])],
        {"W": SIX},
        **more,
    )


def matrix_product(rows):
    weight = np.array([[1], [2]], np.float32)
    ports = [tensor("X", FLOAT, [rows, 2])], [tensor("Y", FLOAT, [rows, 1])]
    return model([node("MatMul", ["X", "W"], ["Y"])], *ports, {"W": weight})


def logical():
    ports = [tensor(name, BOOL, [2, 2]) for name in ("input1:0", "input:0", "output:0")]
    return model([node("And", ["input1:0", "input:0"], ["output:0"])], ports[:2], ports[2:])


def texts():
    ports = [tensor(name, STRING, [2, 2]) for name in ("input:0", "output:0")]
    return model([node("Identity", ["input:0"], ["output:0"])], ports[:1], ports[1:])


def free_dimensions():
    x, y = (tensor(name, FLOAT, ["Dim1", "Dim2", 5]) for name in "xy")
    for dim, meaning in zip(x.type.tensor_type.shape.dim, ("DATA_BATCH", "DATA_CHANNEL")):
        dim.denotation = meaning
    return model([node("Abs", ["x"], ["y"])], [x], [y])


def optional_sequence():
    inner = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    x, y = (helper.make_value_info(name, helper.make_optional_type_proto(inner)) for name in "xy")
    return model([node("Identity", ["x"], ["y"])], [x], [y], opset=16)


def sequence_construct():
    ports = [tensor(f"tensor{k}", INT64, [2, 3]) for k in (1, 2)]
    made = node("SequenceConstruct", ["tensor1", "tensor2"], ["output_sequence"])
    return model([made], ports, [sequence("output_sequence", INT64)])


def sequence_insert():
    made = node("SequenceInsert", ["input_seq", "tensor"], ["output_sequence"])
    ports = [sequence("input_seq", INT64), tensor("tensor", INT64, [2, 3])]
    return model([made], ports, [sequence("output_sequence", INT64)])


def sequence_length():
    made = node("SequenceLength", ["X"], ["Y"])
    return model([made], [sequence("X", FLOAT)], [tensor("Y", INT64, [])])


def two_paths():
    nodes = [node("Add", ["inp0", "inp1"], ["tsor0"]), node("Sub", ["inp0", "inp1"], ["tsor1"])]
    nodes += [node("Neg", [f"tsor{k}"], [f"outp{k}"]) for k in (0, 1)]
    inputs, outputs = ([tensor(f"{name}{k}", FLOAT, [10]) for k in (0, 1)] for name in ("inp", "outp"))
    return model(nodes, inputs, outputs)


def zipped(labels):
    kind = STRING if isinstance(labels[0], str) else INT64
    attribute = {"classlabels_strings" if kind == STRING else "classlabels_int64s": labels}
    maps = helper.make_map_type_proto(kind, helper.make_tensor_type_proto(FLOAT, None))
    output = helper.make_value_info("Z", helper.make_sequence_type_proto(maps))
    made = node("ZipMap", ["X"], ["Z"], domain="ai.onnx.ml", **attribute)
    return model([made], [tensor("X", FLOAT, [None, 3])], [output])


def vectorized():
    maps = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, None))
    given = np.array([25.0, 5.13, 0.0, 0.453, 5.966])
    factors = np.array([1.0, 0.5, 2.0, -1.0, 0.25])
    nodes = [
        node("DictVectorizer", ["float_input"], ["row"], domain="ai.onnx.ml", int64_vocabulary=range(5)),
        node(
            "LinearRegressor",
            ["row"],
            ["variable1"],
            domain="ai.onnx.ml",
            coefficients=factors.tolist(),
            intercepts=[49.752754 - float(given @ factors)],
        ),
    ]
    return model(nodes, [helper.make_value_info("float_input", maps)], [tensor("variable1", FLOAT, [1, 1])])


def labels():
    made = node(
        "LabelEncoder", ["input"], ["variable"], domain="ai.onnx.ml", classes_strings=["1", "2", "3", "4"]
    )
    return model([made], [tensor("input", STRING, [1, 1])], [tensor("variable", INT64, [1, 1])])


def convolution():
    weight = np.ones((8, 1, 5, 5), np.float32)
    ports = [tensor("Input3", FLOAT, [1, 1, 28, 28])], [tensor("Plus214_Output_0", FLOAT, [1, 8, 24, 24])]
    return model([node("Conv", ["Input3", "W"], ["Plus214_Output_0"])], *ports, {"W": weight})


def padded():
    ports = [tensor("X", FLOAT, [1, 2]), tensor("Pads_not_on_disk", INT64, [4])], [tensor("Y", FLOAT, [1, 4])]
    pads = {"Pads_not_on_disk": np.array([0, 0, 1, 1])}
    made = model([node("Pad", ["X", "Pads_not_on_disk"], ["Y"], mode="constant")], *ports, pads)
    (weight,) = made.graph.initializer
    onnx.external_data_helper.set_external_data(weight, location="Pads_not_on_disk.bin")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    return made


def adapted():
    inputs = [tensor("input_x", FLOAT, [4, 4]), tensor("a", FLOAT, [4, None]), tensor("b", FLOAT, [None, 4])]
    weights = {
        "W": np.arange(1, 17, dtype=np.float32).reshape(4, 4),
        "a": np.zeros((4, 0), np.float32),
        "b": np.zeros((0, 4), np.float32),
    }
    nodes = [
        node("MatMul", ["input_x", "W"], ["plain"]),
        node("MatMul", ["input_x", "a"], ["narrow"]),
        node("MatMul", ["narrow", "b"], ["more"]),
        node("Add", ["plain", "more"], ["y"]),
    ]
    return model(nodes, inputs, [tensor("y", FLOAT, [4, 4])], weights)


CONFIGURATION = {
    "session_options": {
        "inter_op_num_threads": 5,
        "intra_op_num_threads": 2,
        "graph_optimization_level": 99,
        "enable_profiling": 1,
    }
}

MODELS = {
    "mul_1.onnx": product,
    "matmul_1.onnx": lambda: matrix_product(3),
    "matmul_2.onnx": lambda: matrix_product("None"),
    "logicaland.onnx": logical,
    "identity_string.onnx": texts,
    "abs_free_dimensions.onnx": free_dimensions,
    "identity_opt.onnx": optional_sequence,
    "sequence_construct.onnx": sequence_construct,
    "sequence_insert.onnx": sequence_insert,
    "sequence_length.onnx": sequence_length,
    "alloc_tensor_reuse.onnx": two_paths,
    "zipmap_stringfloat.onnx": lambda: zipped(["class1", "class2", "class3"]),
    "zipmap_int64float.onnx": lambda: zipped([10, 20, 30]),
    "pipeline_vectorize.onnx": vectorized,
    "LabelEncoder.onnx": labels,
    "mnist.onnx": convolution,
    "model_with_orig_ext_data.onnx": convolution,
    "model_with_external_initializer_come_from_user.onnx": padded,
    "model_with_valid_ort_config_json.onnx": lambda: product(
        properties={"ort_config": json.dumps(CONFIGURATION)}
    ),
    "lora/two_params_lora_model.onnx": adapted,
}


def write(folder: Path) -> None:
    """Writes all of them."""
    for name, make in MODELS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = name == "model_with_orig_ext_data.onnx"
        onnx.save(make(), path, save_as_external_data=beside, location="orig.bin", size_threshold=0)
