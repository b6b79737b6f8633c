//! The operators that are supported, with the opsets in which they are.

use tilewright_ir::{Error, Result};
use tilewright_ops::elementwise::{Binary, Unary, Variadic};
use tilewright_ops::reduce::{Arg, Reduction};

use crate::build::Builder;
use crate::import::{Importer, Stop};
use crate::imported::Imported;
use crate::node::Node;
use crate::ops::norm::Family;
use crate::ops::{
    arithmetic, attention, constants, contraction, dynamic, indexed, list, loss, microsoft, ml,
    movement, narrow, nested, norm, pool, quantize, quantized, quantized_recurrent, random,
    recurrent, reduce, resize, sample, signal, text,
};

/// Versions of ONNX's operator set that are supported, first and last. Before the seventh, few
/// operators are.
pub(crate) const OPSETS: (i64, i64) = (1, 28);

/// Most inputs of an operator that takes any number, and most outputs.
pub(crate) const MANY: usize = 1024;

/// Turns a node into values.
pub(crate) type Plain = fn(&Node, &mut Builder) -> Result<Vec<Imported>>;

/// Turns a node with graphs of its own into values.
type WithGraphs = for<'a> fn(&mut Importer<'a>, &Node<'a>) -> Result<Vec<Imported>, Stop>;

/// How an operator is imported.
#[derive(Clone, Copy)]
pub(crate) enum Import {
    /// From its inputs and attributes.
    Plain(Plain),
    /// With graphs that are attributes.
    WithGraphs(WithGraphs),
}

/// A supported operator.
pub(crate) struct Operator {
    name: &'static str,
    first: i64,
    last: i64,
    pub(crate) max_inputs: usize,
    pub(crate) import: Import,
    /// Whether its inputs may be sequences and optionals.
    pub(crate) takes_lists: bool,
    /// Whether its inputs may be strings.
    pub(crate) takes_texts: bool,
}

const fn op(name: &'static str, first: i64, max_inputs: usize, import: Plain) -> Operator {
    let import = Import::Plain(import);
    Operator {
        name,
        first,
        last: OPSETS.1,
        max_inputs,
        import,
        takes_lists: false,
        takes_texts: false,
    }
}

const fn lists(name: &'static str, first: i64, max_inputs: usize, import: Plain) -> Operator {
    Operator { takes_lists: true, ..op(name, first, max_inputs, import) }
}

const fn graphs(name: &'static str, first: i64, max_inputs: usize, import: WithGraphs) -> Operator {
    let import = Import::WithGraphs(import);
    Operator {
        name,
        first,
        last: OPSETS.1,
        max_inputs,
        import,
        takes_lists: true,
        takes_texts: true,
    }
}

const fn texts(operator: Operator) -> Operator {
    Operator { takes_texts: true, ..operator }
}

const fn until(last: i64, operator: Operator) -> Operator {
    Operator { last, ..operator }
}

/// Those of ONNX itself, sorted by name.
static OPERATORS: &[Operator] = &[
    op("Abs", 7, 1, |n, b| arithmetic::unary(n, b, "abs", Unary::Abs)),
    op("Acos", 7, 1, |n, b| arithmetic::unary(n, b, "acos", Unary::Acos)),
    op("Acosh", 9, 1, |n, b| arithmetic::unary(n, b, "acosh", Unary::Acosh)),
    op("Add", 7, 2, |n, b| arithmetic::binary(n, b, "add", Binary::Add)),
    op("AffineGrid", 20, 2, sample::affine_grid),
    op("And", 7, 2, |n, b| arithmetic::binary(n, b, "and", Binary::And)),
    op("ArgMax", 7, 1, |n, b| reduce::arg_reduce(n, b, "argmax", Arg::Max)),
    op("ArgMin", 7, 1, |n, b| reduce::arg_reduce(n, b, "argmin", Arg::Min)),
    op("Asin", 7, 1, |n, b| arithmetic::unary(n, b, "asin", Unary::Asin)),
    op("Asinh", 9, 1, |n, b| arithmetic::unary(n, b, "asinh", Unary::Asinh)),
    op("Atan", 7, 1, |n, b| arithmetic::unary(n, b, "atan", Unary::Atan)),
    op("Atanh", 9, 1, |n, b| arithmetic::unary(n, b, "atanh", Unary::Atanh)),
    op("Attention", 23, 7, attention::attention),
    op("AveragePool", 7, 1, pool::average_pool),
    op("BatchNormalization", 7, 5, norm::batch_norm),
    op("Bernoulli", 15, 1, random::bernoulli),
    op("BitCast", 26, 1, narrow::bit_cast),
    op("BitShift", 11, 2, arithmetic::bit_shift),
    op("BitwiseAnd", 18, 2, |n, b| arithmetic::binary(n, b, "bitwise_and", Binary::BitAnd)),
    op("BitwiseNot", 18, 1, |n, b| arithmetic::unary(n, b, "bitwise_not", Unary::BitNot)),
    op("BitwiseOr", 18, 2, |n, b| arithmetic::binary(n, b, "bitwise_or", Binary::BitOr)),
    op("BitwiseXor", 18, 2, |n, b| arithmetic::binary(n, b, "bitwise_xor", Binary::BitXor)),
    op("BlackmanWindow", 17, 1, signal::blackman),
    op("Cast", 7, 1, arithmetic::cast),
    op("CastLike", 15, 2, arithmetic::cast_like),
    op("CausalConvWithState", 27, 4, attention::causal_conv),
    op("Ceil", 7, 1, |n, b| arithmetic::unary(n, b, "ceil", Unary::Ceil)),
    op("Celu", 12, 1, arithmetic::celu),
    op("CenterCropPad", 18, 2, sample::center_crop_pad),
    op("Clip", 7, 3, arithmetic::clip),
    op("Col2Im", 18, 3, sample::col2im),
    op("Compress", 9, 2, dynamic::compress),
    op("Concat", 7, MANY, movement::concat),
    lists("ConcatFromSequence", 11, 1, list::concat_from),
    op("Constant", 7, 0, constants::constant),
    op("ConstantOfShape", 9, 1, constants::constant_of_shape),
    op("Conv", 7, 3, contraction::conv),
    op("ConvInteger", 10, 4, quantized::conv_integer),
    op("ConvTranspose", 7, 3, contraction::conv_transpose),
    op("Cos", 7, 1, |n, b| arithmetic::unary(n, b, "cos", Unary::Cos)),
    op("Cosh", 9, 1, |n, b| arithmetic::unary(n, b, "cosh", Unary::Cosh)),
    op("CumProd", 26, 2, |n, b| {
        reduce::cumulative(n, b, "cumprod", tilewright_ops::reduce::cumprod)
    }),
    op("CumSum", 11, 2, |n, b| reduce::cumulative(n, b, "cumsum", tilewright_ops::reduce::cumsum)),
    op("DFT", 17, 3, signal::dft),
    op("DeformConv", 19, 5, sample::deform_conv),
    op("DepthToSpace", 7, 1, movement::depth_to_space),
    op("DequantizeLinear", 10, 3, quantize::dequantize_linear),
    op("Det", 11, 1, sample::det),
    op("Div", 7, 2, |n, b| arithmetic::division(n, b, "div", Binary::Div)),
    op("Dropout", 7, 3, arithmetic::dropout),
    op("DynamicQuantizeLinear", 11, 1, quantized::dynamic_quantize),
    op("Einsum", 12, MANY, contraction::einsum),
    op("Elu", 7, 1, arithmetic::elu),
    texts(op("Equal", 7, 2, text::equal)),
    op("Erf", 9, 1, |n, b| arithmetic::unary(n, b, "erf", Unary::Erf)),
    op("Exp", 7, 1, |n, b| arithmetic::unary(n, b, "exp", Unary::Exp)),
    op("Expand", 8, 2, movement::expand),
    op("EyeLike", 9, 1, constants::eye_like),
    op("Flatten", 7, 1, movement::flatten),
    op("Floor", 7, 1, |n, b| arithmetic::unary(n, b, "floor", Unary::Floor)),
    op("GRU", 7, 6, recurrent::gru),
    op("Gather", 7, 2, indexed::gather),
    op("GatherElements", 11, 2, indexed::gather_elements),
    op("GatherND", 11, 2, indexed::gather_nd),
    op("Gelu", 20, 1, arithmetic::gelu),
    op("Gemm", 7, 3, contraction::gemm),
    op("GlobalAveragePool", 7, 1, pool::global_average_pool),
    op("GlobalLpPool", 7, 1, pool::global_lp_pool),
    op("GlobalMaxPool", 7, 1, pool::global_max_pool),
    op("Greater", 7, 2, |n, b| arithmetic::binary(n, b, "greater", Binary::Greater)),
    op("GreaterOrEqual", 12, 2, |n, b| {
        arithmetic::binary(n, b, "greater_or_equal", Binary::GreaterEqual)
    }),
    op("GridSample", 16, 2, sample::grid_sample),
    op("GroupNormalization", 18, 3, norm::group_norm),
    op("HammingWindow", 17, 1, signal::hamming),
    op("HannWindow", 17, 1, signal::hann),
    op("HardSigmoid", 7, 1, arithmetic::hard_sigmoid),
    op("HardSwish", 14, 1, |n, b| arithmetic::unary(n, b, "hard_swish", Unary::HardSwish)),
    op("Hardmax", 7, 1, |n, b| norm::softmax(n, b, Family::Hardmax)),
    texts(lists("Identity", 1, 1, list::identity)),
    graphs("If", 7, 1, nested::branches),
    op("InstanceNormalization", 7, 3, norm::instance_norm),
    op("IsInf", 10, 1, arithmetic::is_inf),
    op("IsNaN", 9, 1, |n, b| arithmetic::unary(n, b, "is_nan", Unary::IsNan)),
    op("LRN", 7, 1, norm::lrn),
    op("LSTM", 7, 8, recurrent::lstm),
    op("LayerNormalization", 17, 3, norm::layer_norm),
    op("LeakyRelu", 7, 1, arithmetic::leaky_relu),
    op("Less", 7, 2, |n, b| arithmetic::binary(n, b, "less", Binary::Less)),
    op("LessOrEqual", 12, 2, |n, b| arithmetic::binary(n, b, "less_or_equal", Binary::LessEqual)),
    op("LinearAttention", 27, 6, attention::linear),
    op("Log", 7, 1, |n, b| arithmetic::unary(n, b, "log", Unary::Log)),
    op("LogSoftmax", 7, 1, |n, b| norm::softmax(n, b, Family::LogSoftmax)),
    graphs("Loop", 7, MANY, nested::repeat),
    op("LpNormalization", 7, 1, norm::lp_norm),
    op("LpPool", 7, 1, pool::lp_pool),
    op("MatMul", 7, 2, contraction::matmul),
    op("MatMulInteger", 10, 4, quantize::matmul_integer),
    op("Max", 7, MANY, |n, b| arithmetic::variadic(n, b, "max", Variadic::Max)),
    op("MaxPool", 7, 1, pool::max_pool),
    op("MaxRoiPool", 7, 2, sample::max_roi_pool),
    op("MaxUnpool", 9, 3, sample::max_unpool),
    op("Mean", 7, MANY, |n, b| arithmetic::variadic(n, b, "mean", Variadic::Mean)),
    op("MeanVarianceNormalization", 9, 1, norm::mean_variance_norm),
    op("MelWeightMatrix", 17, 5, signal::mel_weight_matrix),
    op("Min", 7, MANY, |n, b| arithmetic::variadic(n, b, "min", Variadic::Min)),
    op("Mish", 18, 1, |n, b| arithmetic::unary(n, b, "mish", Unary::Mish)),
    op("Mod", 10, 2, arithmetic::modulo),
    op("Mul", 7, 2, |n, b| arithmetic::binary(n, b, "mul", Binary::Mul)),
    op("Multinomial", 7, 1, random::multinomial),
    op("Neg", 7, 1, |n, b| arithmetic::unary(n, b, "neg", Unary::Neg)),
    op("NegativeLogLikelihoodLoss", 12, 3, loss::negative_log_likelihood),
    op("NonMaxSuppression", 10, 5, dynamic::non_max_suppression),
    op("NonZero", 9, 1, dynamic::non_zero),
    op("Not", 1, 1, |n, b| arithmetic::unary(n, b, "not", Unary::Not)),
    op("OneHot", 9, 3, movement::one_hot),
    lists("Optional", 15, 1, list::optional),
    lists("OptionalGetElement", 15, 1, list::optional_get),
    lists("OptionalHasElement", 15, 1, list::optional_has),
    op("Or", 7, 2, |n, b| arithmetic::binary(n, b, "or", Binary::Or)),
    op("PRelu", 7, 2, |n, b| arithmetic::binary(n, b, "prelu", Binary::PRelu)),
    op("Pad", 7, 4, movement::pad),
    op("Pow", 7, 2, arithmetic::pow),
    op("QLinearConv", 10, 9, quantized::qlinear_conv),
    op("QLinearMatMul", 10, 8, quantized::qlinear_matmul),
    op("QuantizeLinear", 10, 3, quantize::quantize_linear),
    op("RMSNormalization", 23, 2, norm::rms_norm),
    op("RNN", 7, 6, recurrent::rnn),
    op("RandomNormal", 7, 0, random::normal),
    op("RandomNormalLike", 7, 1, random::normal_like),
    op("RandomUniform", 7, 0, random::uniform),
    op("RandomUniformLike", 7, 1, random::uniform_like),
    op("Range", 11, 3, constants::range),
    op("Reciprocal", 7, 1, |n, b| arithmetic::unary(n, b, "reciprocal", Unary::Reciprocal)),
    op("ReduceL1", 7, 2, |n, b| reduce::reduce(n, b, "reduce_l1", Reduction::L1, 18)),
    op("ReduceL2", 7, 2, |n, b| reduce::reduce(n, b, "reduce_l2", Reduction::L2, 18)),
    op("ReduceLogSum", 7, 2, |n, b| reduce::reduce(n, b, "reduce_log_sum", Reduction::LogSum, 18)),
    op("ReduceLogSumExp", 7, 2, |n, b| {
        reduce::reduce(n, b, "reduce_log_sum_exp", Reduction::LogSumExp, 18)
    }),
    op("ReduceMax", 7, 2, |n, b| reduce::reduce(n, b, "reduce_max", Reduction::Max, 18)),
    op("ReduceMean", 7, 2, |n, b| reduce::reduce(n, b, "reduce_mean", Reduction::Mean, 18)),
    op("ReduceMin", 7, 2, |n, b| reduce::reduce(n, b, "reduce_min", Reduction::Min, 18)),
    op("ReduceProd", 7, 2, |n, b| reduce::reduce(n, b, "reduce_prod", Reduction::Prod, 18)),
    op("ReduceSum", 7, 2, |n, b| reduce::reduce(n, b, "reduce_sum", Reduction::Sum, 13)),
    op("ReduceSumSquare", 7, 2, |n, b| {
        reduce::reduce(n, b, "reduce_sum_square", Reduction::SumSquare, 18)
    }),
    texts(op("RegexFullMatch", 20, 1, text::full_match)),
    op("Relu", 7, 1, |n, b| arithmetic::unary(n, b, "relu", Unary::Relu)),
    op("Reshape", 7, 2, movement::reshape),
    op("Resize", 10, 4, resize::resize),
    op("ReverseSequence", 10, 2, movement::reverse_sequence),
    op("RoiAlign", 10, 3, sample::roi_align),
    op("RotaryEmbedding", 23, 4, attention::rotary_embedding),
    op("Round", 11, 1, |n, b| arithmetic::unary(n, b, "round", Unary::Round)),
    op("STFT", 17, 4, signal::stft),
    graphs("Scan", 8, MANY, nested::scan),
    until(10, op("Scatter", 9, 3, indexed::scatter_elements)),
    op("ScatterElements", 11, 3, indexed::scatter_elements),
    op("ScatterND", 11, 3, indexed::scatter_nd),
    op("Selu", 7, 1, arithmetic::selu),
    lists("SequenceAt", 11, 2, list::at),
    lists("SequenceConstruct", 11, MANY, list::construct),
    lists("SequenceEmpty", 11, 0, list::empty),
    lists("SequenceErase", 11, 2, list::erase),
    lists("SequenceInsert", 11, 3, list::insert),
    lists("SequenceLength", 11, 1, list::length),
    graphs("SequenceMap", 17, MANY, nested::map),
    texts(op("Shape", 1, 1, constants::shape)),
    op("Shrink", 9, 1, arithmetic::shrink),
    op("Sigmoid", 7, 1, |n, b| arithmetic::unary(n, b, "sigmoid", Unary::Sigmoid)),
    op("Sign", 9, 1, |n, b| arithmetic::unary(n, b, "sign", Unary::Sign)),
    op("Sin", 7, 1, |n, b| arithmetic::unary(n, b, "sin", Unary::Sin)),
    op("Sinh", 9, 1, |n, b| arithmetic::unary(n, b, "sinh", Unary::Sinh)),
    texts(op("Size", 1, 1, constants::size)),
    op("Slice", 7, 5, movement::slice),
    op("Softmax", 7, 1, |n, b| norm::softmax(n, b, Family::Softmax)),
    op("SoftmaxCrossEntropyLoss", 12, 3, loss::softmax_cross_entropy),
    op("Softplus", 7, 1, |n, b| arithmetic::unary(n, b, "softplus", Unary::Softplus)),
    op("Softsign", 7, 1, |n, b| arithmetic::unary(n, b, "softsign", Unary::Softsign)),
    op("SpaceToDepth", 7, 1, movement::space_to_depth),
    op("Split", 7, 2, movement::split),
    lists("SplitToSequence", 11, 2, list::split_to),
    op("Sqrt", 7, 1, |n, b| arithmetic::unary(n, b, "sqrt", Unary::Sqrt)),
    op("Squeeze", 7, 2, movement::squeeze),
    texts(op("StringConcat", 20, 2, text::concat)),
    texts(op("StringNormalizer", 10, 1, text::normalize)),
    texts(op("StringSplit", 20, 1, text::split)),
    op("Sub", 7, 2, |n, b| arithmetic::binary(n, b, "sub", Binary::Sub)),
    op("Sum", 7, MANY, |n, b| arithmetic::variadic(n, b, "sum", Variadic::Sum)),
    op("SwiGLU", 28, 2, arithmetic::swiglu),
    op("Swish", 24, 1, arithmetic::swish),
    op("Tan", 7, 1, |n, b| arithmetic::unary(n, b, "tan", Unary::Tan)),
    op("Tanh", 7, 1, |n, b| arithmetic::unary(n, b, "tanh", Unary::Tanh)),
    op("TensorScatter", 24, 3, attention::tensor_scatter),
    texts(op("TfIdfVectorizer", 9, 1, ml::tf_idf)),
    op("ThresholdedRelu", 10, 1, arithmetic::thresholded_relu),
    op("Tile", 7, 2, movement::tile),
    op("TopK", 10, 2, reduce::top_k),
    op("Transpose", 7, 1, movement::transpose),
    op("Trilu", 14, 2, movement::trilu),
    op("Unique", 11, 1, dynamic::unique),
    op("Unsqueeze", 7, 2, movement::unsqueeze),
    until(9, op("Upsample", 7, 2, resize::upsample)),
    op("Where", 9, 3, arithmetic::select),
    op("Xor", 7, 2, |n, b| arithmetic::binary(n, b, "xor", Binary::Xor)),
];

/// Those of the domain `com.microsoft`, sorted by name.
static MICROSOFT: &[Operator] = &[
    op("Attention", 9, 6, microsoft::attention),
    op("BiasGelu", 9, 2, microsoft::bias_gelu),
    graphs("DynamicQuantizeLSTM", 9, 12, quantized_recurrent::lstm),
    op("DynamicQuantizeMatMul", 9, 5, microsoft::dynamic_quantize_matmul),
    op("EmbedLayerNormalization", 9, 9, microsoft::embed_layer_norm),
    op("FastGelu", 9, 2, microsoft::fast_gelu),
    op("FusedConv", 9, 4, microsoft::fused_conv),
    op("FusedMatMul", 9, 2, microsoft::fused_matmul),
    op("Gelu", 9, 1, microsoft::gelu),
    op("MatMulNBits", 9, 6, microsoft::matmul_nbits),
    op("MultiHeadAttention", 9, 8, microsoft::multi_head_attention),
    op("NhwcConv", 9, 3, microsoft::nhwc_conv),
    op("QLinearAdd", 9, 8, microsoft::qlinear_add),
    op("QLinearConcat", 9, MANY, microsoft::qlinear_concat),
    op("QLinearGlobalAveragePool", 9, 5, microsoft::qlinear_global_average_pool),
    op("QLinearMul", 9, 8, microsoft::qlinear_mul),
    op("QLinearSigmoid", 9, 5, microsoft::qlinear_sigmoid),
    op("QuickGelu", 9, 1, microsoft::quick_gelu),
    op("RotaryEmbedding", 9, 4, microsoft::rotary_embedding),
    op("SkipLayerNormalization", 9, 5, microsoft::skip_layer_norm),
    op("SkipSimplifiedLayerNormalization", 9, 4, microsoft::skip_rms_norm),
];

/// Those of the domain `ai.onnx.preview`, sorted by name; their versions are those of the domain.
static PREVIEW: &[Operator] = &[until(1, graphs("FlexAttention", 1, 3, attention::flex_attention))];

/// Those of the domain `ai.onnx.ml`, sorted by name; their versions are those of the domain.
static ML: &[Operator] = &[
    until(5, op("ArrayFeatureExtractor", 1, 2, ml::array_feature_extractor)),
    until(5, op("Binarizer", 1, 1, ml::binarizer)),
    until(5, texts(op("LabelEncoder", 2, 1, ml::label_encoder))),
];

/// A domain whose operators have versions of their own, first and last.
struct Domain {
    name: &'static str,
    operators: &'static [Operator],
}

/// All domains; ONNX's own one has no name. Operators of `com.microsoft` go by the opset of ONNX, which
/// their own version says nothing of.
static DOMAINS: &[Domain] = &[
    Domain { name: "", operators: OPERATORS },
    Domain { name: "ai.onnx.ml", operators: ML },
    Domain { name: "ai.onnx.preview", operators: PREVIEW },
    Domain { name: MICROSOFT_DOMAIN, operators: MICROSOFT },
];

const MICROSOFT_DOMAIN: &str = "com.microsoft";

/// Whether there are operators of a domain.
pub(crate) fn has_domain(domain: &str) -> bool {
    domain == "ai.onnx" || DOMAINS.iter().any(|d| d.name == domain)
}

/// The domain whose version counts for the operators of one: ONNX's own, unless there are operators of
/// it with versions of their own.
pub(crate) fn versions_of(domain: &str) -> &str {
    match domain {
        MICROSOFT_DOMAIN => "",
        other if DOMAINS.iter().any(|d| d.name == other) => other,
        _ => "",
    }
}

/// An operator that can be imported, for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedOp {
    /// Its domain; ONNX's own one has no name.
    pub domain: &'static str,
    /// ONNX's name.
    pub name: &'static str,
    /// First opset in which it is supported.
    pub min: i64,
    /// Last opset in which it is supported.
    pub max: i64,
}

/// The operators that can be imported, by domain and name: those of ONNX's own domain first.
pub fn supported_ops() -> impl Iterator<Item = SupportedOp> {
    DOMAINS.iter().flat_map(|domain| {
        let of = |o: &Operator| SupportedOp {
            domain: domain.name,
            name: o.name,
            min: o.first,
            max: o.last,
        };
        domain.operators.iter().map(of)
    })
}

/// The operator of a domain and name; the error says where to look. The opset is the version of the
/// domain that [`versions_of`] says.
pub(crate) fn find(domain: &str, name: &str, opset: i64) -> Result<&'static Operator> {
    let standard = if domain == "ai.onnx" { "" } else { domain };
    let Some(Domain { operators: table, .. }) = DOMAINS.iter().find(|d| d.name == standard) else {
        let names = DOMAINS.iter().map(|d| d.name).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        return Err(Error::unsupported(format!(
            "operators of the domain `{domain}` are not supported"
        ))
        .note(format!("ONNX's own operators are, and some of {}", names.join(", "))));
    };
    let Ok(at) = table.binary_search_by(|o| o.name.cmp(name)) else {
        return Err(Error::unsupported("the operator is not supported")
            .help("`tilewright ops` lists those that are"));
    };
    let found = &table[at];
    match (found.first..=found.last).contains(&opset) {
        true => Ok(found),
        false => Err(Error::unsupported(format!(
            "the operator is not supported in this opset; it is in opsets {} to {}",
            found.first, found.last
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_opsets_are_supported() {
        for Domain { operators, .. } in DOMAINS {
            assert!(operators.is_sorted_by(|a, b| a.name < b.name));
            assert!(operators.iter().all(|o| o.first >= OPSETS.0 && o.last <= OPSETS.1));
        }
        assert!(DOMAINS.is_sorted_by(|a, b| a.name < b.name));
    }
}
