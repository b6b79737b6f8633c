//! Built-in functions: one table of what is known of each.
//!
//! A row of the table has the name in text, what the function computes, and the facts that others
//! use: what its operands and its result may be, when it is not defined, what it costs, whether it
//! commutes, and how its values are bounded. How it becomes machine code is said by one table of the
//! code generator.
//!
//! ```
//! use tilewright_ir::{DType, Intrin};
//! assert_eq!(Intrin::from_name("fabs"), Some(Intrin::Abs));
//! assert_eq!((Intrin::Pow.arity(), Intrin::IsNan.result(DType::F16)), (2, DType::BOOL));
//! ```

use crate::demand::Need;
use crate::dtype::{DType, TypeKind};
use crate::scalar::Fault;

/// Kinds of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// Floating point.
    Float,
    /// Integers or floating point.
    Number,
    /// Integers.
    Int,
    /// Integers or `bool`.
    Bits,
    /// `bool`.
    Bool,
    /// Anything but handles.
    Any,
}

impl Operands {
    /// Whether a type is of these kinds.
    pub fn admit(self, dtype: DType) -> bool {
        let (int, float, bool) = (dtype.is_int(), dtype.is_float(), dtype.is_bool());
        match self {
            Operands::Float => float,
            Operands::Number => int || float,
            Operands::Int => int,
            Operands::Bits => int || bool,
            Operands::Bool => bool,
            Operands::Any => int || float || bool,
        }
    }

    /// The kinds in words.
    pub fn text(self) -> &'static str {
        match self {
            Operands::Float => "floating point",
            Operands::Number => "numbers",
            Operands::Int => "integers",
            Operands::Bits => "integers or bool",
            Operands::Bool => "bool",
            Operands::Any => "numbers or bool",
        }
    }
}

/// What a function of floats computes, in `f64`.
#[derive(Clone, Copy, Debug)]
pub enum OfFloats {
    /// A number from one.
    One(fn(f64) -> f64),
    /// A number from two.
    Two(fn(f64, f64) -> f64),
    /// Whether something holds of one; the result is `bool`.
    Is(fn(f64) -> bool),
}

/// What a function of integers or `bool` computes of values of a type; the result is reduced to the
/// width of that type. The second value is any where there is one argument.
pub type OfInts = fn(i64, i64, DType) -> Result<i64, Fault>;

/// The row of an intrinsic.
struct Row {
    name: &'static str,
    /// Other names in text.
    aliases: &'static [&'static str],
    operands: Operands,
    arity: usize,
    /// The scalar type of the result; that of the operands where there is none.
    result: Option<DType>,
    floats: Option<OfFloats>,
    ints: Option<OfInts>,
    /// What the second operand has to be where the operands are integers.
    need: Option<Need>,
    /// Operations that it counts for.
    cost: usize,
    commutes: bool,
    /// It returns its argument and says something of it.
    hint: bool,
    /// Floats: the result is a value of the type without rounding.
    exact: bool,
    /// Floats: the largest magnitude of the result, before rounding, where that of the first
    /// operand is at most the argument.
    bound: Option<fn(f64) -> f64>,
    /// Floats: it does not fall from here on.
    rises_from: Option<f64>,
}

/// Operations that a call of a library counts for.
const CALL: usize = 16;

/// A function of floats that is computed by a library or by many operations.
const FLOATS: Row = Row {
    name: "",
    aliases: &[],
    operands: Operands::Float,
    arity: 1,
    result: None,
    floats: None,
    ints: None,
    need: None,
    cost: CALL,
    commutes: false,
    hint: false,
    exact: false,
    bound: None,
    rises_from: None,
};

/// An integral value near a float.
const INTEGRAL: Row = Row {
    cost: 1,
    exact: true,
    bound: Some(f64::ceil),
    rises_from: Some(f64::NEG_INFINITY),
    ..FLOATS
};

/// A question about a float.
const QUESTION: Row = Row { result: Some(DType::BOOL), cost: 1, ..FLOATS };

/// A function of the bits of an integer.
const BITS: Row = Row { operands: Operands::Bits, cost: 1, ..FLOATS };

/// A shift of integers.
const SHIFT: Row =
    Row { operands: Operands::Int, arity: 2, need: Some(Need::Shift), cost: 1, ..FLOATS };

/// A hint about a condition.
const HINT: Row =
    Row { operands: Operands::Bool, ints: Some(|x, _, _| Ok(x)), cost: 0, hint: true, ..FLOATS };

/// A function of one float.
const fn one(f: fn(f64) -> f64) -> Option<OfFloats> {
    Some(OfFloats::One(f))
}

/// A function of two floats.
const fn two(f: fn(f64, f64) -> f64) -> Option<OfFloats> {
    Some(OfFloats::Two(f))
}

/// Everywhere.
const ALL: Option<f64> = Some(f64::NEG_INFINITY);

macro_rules! intrinsics {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $row:ident { $($field:ident: $value:expr),* $(,)? }
    )+) => {
        /// Built-in functions. `T.<name>` in text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Intrin { $($(#[doc = $doc])+ $variant),+ }

        impl Intrin {
            /// Every intrinsic.
            pub const ALL: &[Intrin] = &[$(Intrin::$variant),+];
        }

        /// One row an intrinsic, in their order.
        static ROWS: &[Row] = &[$(Row { name: $name, $($field: $value,)* ..$row }),+];
    };
}

intrinsics! {
    /// e to the power x.
    Exp "exp" FLOATS { floats: one(libm::exp), bound: Some(f64::exp), rises_from: ALL }
    /// 2 to the power x.
    Exp2 "exp2" FLOATS { floats: one(libm::exp2), bound: Some(f64::exp2), rises_from: ALL }
    /// 10 to the power x.
    Exp10 "exp10" FLOATS { floats: one(libm::exp10) }
    /// Natural logarithm.
    Log "log" FLOATS { floats: one(libm::log), rises_from: Some(1.0) }
    /// Logarithm to base 2.
    Log2 "log2" FLOATS { floats: one(libm::log2), rises_from: Some(1.0) }
    /// Logarithm to base 10.
    Log10 "log10" FLOATS { floats: one(libm::log10), rises_from: Some(1.0) }
    /// log(1 + x).
    Log1p "log1p" FLOATS { floats: one(libm::log1p), rises_from: Some(0.0) }
    /// Square root.
    Sqrt "sqrt" FLOATS { floats: one(f64::sqrt), cost: 4, rises_from: Some(0.0) }
    /// 1 / sqrt(x).
    Rsqrt "rsqrt" FLOATS { floats: one(|x| 1.0 / x.sqrt()), cost: 4 }
    /// 1 / (1 + exp(-x)).
    Sigmoid "sigmoid" FLOATS {
        floats: one(|x| 1.0 / (1.0 + libm::exp(-x))), bound: Some(|_| 1.0), rises_from: ALL
    }
    /// Gauss error function.
    Erf "erf" FLOATS { floats: one(libm::erf), bound: Some(|_| 1.0), rises_from: ALL }
    /// Sine of radians.
    Sin "sin" FLOATS { floats: one(libm::sin), bound: Some(|_| 1.0) }
    /// Cosine of radians.
    Cos "cos" FLOATS { floats: one(libm::cos), bound: Some(|_| 1.0) }
    /// Tangent of radians.
    Tan "tan" FLOATS { floats: one(libm::tan) }
    /// Hyperbolic sine.
    Sinh "sinh" FLOATS { floats: one(libm::sinh), bound: Some(f64::sinh), rises_from: ALL }
    /// Hyperbolic cosine.
    Cosh "cosh" FLOATS { floats: one(libm::cosh), bound: Some(f64::cosh) }
    /// Hyperbolic tangent.
    Tanh "tanh" FLOATS { floats: one(libm::tanh), bound: Some(|_| 1.0), rises_from: ALL }
    /// Arc sine.
    Asin "asin" FLOATS { floats: one(libm::asin) }
    /// Arc cosine.
    Acos "acos" FLOATS { floats: one(libm::acos) }
    /// Arc tangent.
    Atan "atan" FLOATS { floats: one(libm::atan), bound: Some(|_| 2.0), rises_from: ALL }
    /// Inverse hyperbolic sine.
    Asinh "asinh" FLOATS { floats: one(libm::asinh), bound: Some(f64::asinh), rises_from: ALL }
    /// Inverse hyperbolic cosine.
    Acosh "acosh" FLOATS { floats: one(libm::acosh), rises_from: Some(1.0) }
    /// Inverse hyperbolic tangent.
    Atanh "atanh" FLOATS { floats: one(libm::atanh) }
    /// Arc tangent of y / x in the right quadrant.
    Atan2 "atan2" FLOATS { arity: 2, floats: two(libm::atan2) }
    /// x to the power y, of floats or integers.
    Pow "pow" FLOATS {
        aliases: &["power"],
        operands: Operands::Number,
        arity: 2,
        floats: two(libm::pow),
        ints: Some(power),
        need: Some(Need::Exponent)
    }
    /// Remainder of floats with the sign of the first.
    Fmod "fmod" FLOATS { arity: 2, floats: two(libm::fmod) }
    /// sqrt(x * x + y * y), where the squares may overflow.
    Hypot "hypot" FLOATS { arity: 2, floats: two(libm::hypot), commutes: true }
    /// Magnitude, of floats or integers.
    Abs "abs" FLOATS {
        aliases: &["fabs"],
        operands: Operands::Number,
        floats: one(f64::abs),
        ints: Some(|x, _, t| Ok(if t.kind == TypeKind::UInt { x } else { x.wrapping_abs() })),
        cost: 1,
        exact: true,
        bound: Some(|x| x)
    }
    /// Largest integral value not above.
    Floor "floor" INTEGRAL { floats: one(f64::floor) }
    /// Smallest integral value not below.
    Ceil "ceil" INTEGRAL { floats: one(f64::ceil) }
    /// Integral part.
    Trunc "trunc" INTEGRAL { floats: one(f64::trunc), bound: Some(|x| x) }
    /// Nearest integral value, ties away from zero.
    Round "round" INTEGRAL { floats: one(f64::round) }
    /// Nearest integral value, ties to even.
    NearbyInt "nearbyint" INTEGRAL { floats: one(f64::round_ties_even) }
    /// Whether the value is `NaN`.
    IsNan "isnan" QUESTION { floats: Some(OfFloats::Is(f64::is_nan)) }
    /// Whether the value is infinite.
    IsInf "isinf" QUESTION { floats: Some(OfFloats::Is(f64::is_infinite)) }
    /// Whether the value is neither infinite nor `NaN`.
    IsFinite "isfinite" QUESTION { floats: Some(OfFloats::Is(f64::is_finite)) }
    /// Bitwise and.
    BitAnd "bitwise_and" BITS { arity: 2, ints: Some(|x, y, _| Ok(x & y)), commutes: true }
    /// Bitwise or.
    BitOr "bitwise_or" BITS { arity: 2, ints: Some(|x, y, _| Ok(x | y)), commutes: true }
    /// Bitwise exclusive or.
    BitXor "bitwise_xor" BITS { arity: 2, ints: Some(|x, y, _| Ok(x ^ y)), commutes: true }
    /// Bitwise complement.
    BitNot "bitwise_not" BITS { ints: Some(|x, _, t| Ok(if t.is_bool() { x ^ 1 } else { !x })) }
    /// Shift left.
    Shl "shift_left" SHIFT { ints: Some(|x, by, t| Ok(x << amount(by, t)?)) }
    /// Shift right; arithmetic for signed types.
    Shr "shift_right" SHIFT {
        ints: Some(|x, by, t| match t.kind {
            TypeKind::UInt => Ok(((x as u64) >> amount(by, t)?) as i64),
            _ => Ok(x >> amount(by, t)?),
        })
    }
    /// Number of one bits.
    Popcount "popcount" BITS {
        operands: Operands::Int, ints: Some(|x, _, t| Ok(i64::from(bits(x, t).count_ones())))
    }
    /// Number of zero bits above the highest one bit, as int32; all bits for zero.
    Clz "clz" BITS {
        operands: Operands::Int,
        result: Some(DType::I32),
        ints: Some(|x, _, t| {
            Ok(i64::from(bits(x, t).leading_zeros()) + i64::from(t.bits) - 64)
        })
    }
    /// A condition that is expected to hold: the value itself, with a hint for loop partitioning.
    Likely "likely" HINT {}
    /// A condition at which no loop is to be taken apart: the value itself.
    IgnoreLoopPartition "ignore_loop_partition" HINT {}
    /// Of an iteration of a parallel loop: one that a thread runs before it, with none of another thread in between,
    /// or itself. Iterations that run at the same time have different ones, so it names memory that those of a thread
    /// use one after the other.
    FirstOfTask "first_of_task" BITS { operands: Operands::Int, ints: Some(|x, _, _| Ok(x)), cost: 0 }
}

/// The bits of a value in the width of its type.
fn bits(x: i64, t: DType) -> u64 {
    x as u64 & u64::MAX.checked_shr(64 - u32::from(t.bits)).unwrap_or(0)
}

/// The number of bits to shift by.
fn amount(by: i64, t: DType) -> Result<u32, Fault> {
    if (0..i64::from(t.bits)).contains(&by) { Ok(by as u32) } else { Err(Fault::ShiftTooFar) }
}

/// An integer to a power, with wrap-around, by squaring.
fn power(x: i64, y: i64, t: DType) -> Result<i64, Fault> {
    if t.kind != TypeKind::UInt && y < 0 {
        return Err(Fault::NegativePower);
    }
    let (mut base, mut exponent, mut value) = (x, y as u64, 1i64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            value = value.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    Ok(value)
}

impl Intrin {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Name in text, after `T.`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Other names in text.
    pub fn aliases(self) -> &'static [&'static str] {
        self.row().aliases
    }

    /// The intrinsic of this name.
    pub fn from_name(name: &str) -> Option<Intrin> {
        Intrin::ALL.iter().copied().find(|op| op.name() == name || op.aliases().contains(&name))
    }

    /// Number of arguments.
    pub fn arity(self) -> usize {
        self.row().arity
    }

    /// What it takes; where it takes two operands, they have one type.
    pub fn operands(self) -> Operands {
        self.row().operands
    }

    /// The type of the result for a first argument of a type.
    pub fn result(self, first: DType) -> DType {
        self.row().result.map_or(first, |of| of.with_lanes(first.lanes))
    }

    /// What it computes of floats; `None` where it takes none.
    pub fn of_floats(self) -> Option<OfFloats> {
        self.row().floats
    }

    /// What it computes of one float, where it gives a number.
    pub fn of_float(self) -> Option<fn(f64) -> f64> {
        match self.of_floats() {
            Some(OfFloats::One(f)) => Some(f),
            _ => None,
        }
    }

    /// What it computes of integers and `bool`; `None` where it takes none.
    pub fn of_ints(self) -> Option<OfInts> {
        self.row().ints
    }

    /// What its second operand, of a type, has to be for it to be defined.
    pub(crate) fn need(self, dtype: DType) -> Option<Need> {
        self.row().need.filter(|_| dtype.is_int())
    }

    /// Operations that it counts for.
    pub fn cost(self) -> usize {
        self.row().cost
    }

    /// Whether exchanging its two operands changes nothing.
    pub fn commutes(self) -> bool {
        self.row().commutes
    }

    /// Whether the result is `bool` whatever the argument.
    pub fn is_predicate(self) -> bool {
        self.row().result == Some(DType::BOOL)
    }

    /// Whether the result is the argument, a condition, with a hint for loop partitioning.
    pub fn is_hint(self) -> bool {
        self.row().hint
    }

    /// Whether the result is a value of the operands' type without rounding, of floats.
    pub fn is_exact(self) -> bool {
        self.row().exact
    }

    /// The largest magnitude of the result, before it is rounded, where that of the first operand is
    /// at most `x`; `None` where that is not known.
    pub fn bound(self, x: f64) -> Option<f64> {
        self.row().bound.map(|of| of(x))
    }

    /// Whether it does not fall between `x` and what is above it, of floats.
    pub fn rises_from(self, x: f64) -> bool {
        self.row().rises_from.is_some_and(|from| x >= from)
    }
}
