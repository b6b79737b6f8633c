//! Groups of threads, as machines have them whose vectors are threads: GPUs.

use std::sync::Arc;

use tilewright_ir::{Attr, Error, Expr, Intrin, Result};

/// What the triple of a target is for GPUs of NVIDIA; its CPU is their architecture, such as `sm_80`.
pub const CUDA: &str = "cuda";

/// What the groups of threads of a machine offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadGroups {
    /// Threads that run one instruction together.
    pub warp: i64,
    /// Banks of the memory that a group shares: words of 32 bits that are accessed at once.
    pub banks: i64,
    /// Bytes of global memory that one access moves.
    pub segment: i64,
    /// Registers of 32 bits that a thread may have.
    pub registers: i64,
    /// Bytes of memory that a group shares.
    pub shared: i64,
    /// Threads of the largest group.
    pub threads: i64,
    /// Whether threads go on while what they copy to shared memory is on its way.
    pub async_copies: bool,
    /// What work costs.
    pub costs: GroupCosts,
}

/// The annotation of a serial loop that asks for two halves of the shared memory that it fills.
pub const DOUBLE_BUFFER: &str = "double_buffer";

/// The annotation of an allocation of shared memory whose writers wait for the next barrier in any case, so that
/// machines may copy into it meanwhile.
pub const ASYNC_COPY: &str = "async_copy";

/// The annotation of a loop that says of buffers in shared memory, which are filled in it, how parts of their rows are
/// exchanged: a list with an item of [`ExchangedRows`] for each.
pub const EXCHANGED_ROWS: &str = "exchanged_rows";

/// The annotation of a loop over groups that says what is expected of its kernel: the most registers of a thread, and the
/// bytes that a group shares.
pub const EXPECTED: &str = "expected";

/// A layout of rows of shared memory in which parts of each row change places by the number of the row: element `j` of row
/// `i` lies in part `j // part ^ (i // together % turned)`. What lies in one column of eight rows then has eight banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangedRows {
    /// Elements of a row.
    pub row: i64,
    /// Elements of a part, which stay neighbours.
    pub part: i64,
    /// Rows that follow one another and are exchanged alike.
    pub together: i64,
    /// After how many of these the first exchange comes again: a power of two, and not more than a row has parts.
    pub turned: i64,
}

impl ExchangedRows {
    /// What an annotation says of the buffer of a name.
    pub fn attr(&self, buffer: &str) -> Attr {
        let numbers = [self.row, self.part, self.together, self.turned];
        Attr::List([Attr::Str(buffer.into())].into_iter().chain(numbers.map(Attr::Int)).collect())
    }

    /// The buffers that an annotation names, each with its rows; those that make no sense are left out.
    pub fn of_attr(attr: &Attr) -> Vec<(Arc<str>, ExchangedRows)> {
        let Attr::List(all) = attr else { return Vec::new() };
        let item = |item: &Attr| {
            let Attr::List(parts) = item else { return None };
            let [
                Attr::Str(name),
                Attr::Int(row),
                Attr::Int(part),
                Attr::Int(together),
                Attr::Int(turned),
            ] = &parts[..]
            else {
                return None;
            };
            let rows =
                ExchangedRows { row: *row, part: *part, together: *together, turned: *turned };
            rows.is_one_to_one().then(|| (name.clone(), rows))
        };
        all.iter().filter_map(item).collect()
    }

    /// Whether each element of a row gets a place of its own in it.
    fn is_one_to_one(&self) -> bool {
        let ExchangedRows { row, part, together, turned } = *self;
        let positive = row > 0 && part > 0 && together > 0 && turned > 0;
        positive && row % part == 0 && turned & (turned - 1) == 0 && row / part % turned == 0
    }

    /// The place of what lies at a place along rows that follow one another, behind so many other rows.
    pub fn place(&self, before: Option<&Expr>, at: &Expr) -> Expr {
        let [i, j] = [at.clone().floordiv(self.row), at.clone().floormod(self.row)];
        let number = before.map_or_else(|| i.clone(), |before| before.clone() + i.clone());
        let by = number.floordiv(self.together).floormod(self.turned);
        let part = Expr::intrin(Intrin::BitXor, vec![j.clone().floordiv(self.part), by]);
        i * self.row + part * self.part + j.floormod(self.part)
    }
}

/// What work costs on a machine with groups of threads: the constants of its cost model, whose cycles are those of the
/// whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupCosts {
    /// Processors, each of which runs groups of its own.
    pub processors: i64,
    /// Multiplications with additions of `float32` that start in a cycle.
    pub multiply_adds: i64,
    /// The same of floats of 16 bits by tensor instructions.
    pub tensor_multiply_adds: i64,
    /// Bytes that go between the machine and its memory in a cycle.
    pub bytes: i64,
    /// Cycles from one kernel to the next one.
    pub launch: i64,
}

impl GroupCosts {
    /// Those of a machine of which only the number of processors is known: as each one of an A100 (NVIDIA's data
    /// sheet: 64 multiplications and 1024 by tensor instructions a cycle, 1555 GB/s for 108 of them at 1.41 GHz).
    pub fn of_processors(processors: i64) -> GroupCosts {
        GroupCosts {
            processors,
            multiply_adds: 64 * processors,
            tensor_multiply_adds: 1024 * processors,
            bytes: 10 * processors,
            launch: 3500,
        }
    }

    /// Those of the largest GPU of an architecture. From `sm_90` on, they are those of an H100 (data sheet: 132
    /// processors at 1.755 GHz, 3350 GB/s); instructions of a warp get three fifths of the rate of its tensor cores.
    fn of_architecture(name: &str) -> GroupCosts {
        match version(name) {
            Some(90..) => GroupCosts {
                processors: 132,
                multiply_adds: 132 * 128,
                tensor_multiply_adds: 132 * 1228,
                bytes: 1909,
                launch: 4300,
            },
            _ => GroupCosts::of_processors(108),
        }
    }
}

impl ThreadGroups {
    /// Those of a family of machines, where it has any (CUDA C++ Programming Guide, table of technical
    /// specifications for each compute capability: the same from 5.0 on).
    pub(crate) fn of_family(triple: &str, cpu: &str) -> Option<ThreadGroups> {
        (triple == CUDA).then_some(ThreadGroups {
            warp: 32,
            banks: 32,
            segment: 128,
            registers: 255,
            shared: 48 << 10,
            threads: 1024,
            async_copies: version(cpu).is_some_and(|n| n >= 80),
            costs: GroupCosts::of_architecture(cpu),
        })
    }
}

/// Refuses what is no architecture of NVIDIA's GPUs; no name is the oldest that is known.
///
/// # Errors
/// [`Error::Input`] for other names.
pub fn check_architecture(name: &str) -> Result<()> {
    if version(name).is_some_and(|n| n >= 50) || name.is_empty() {
        return Ok(());
    }
    let error = Error::input(format!("`{name}` is no architecture of NVIDIA's GPUs"));
    Err(error.help("they are called `sm_80`, `sm_90`, from `sm_50` on"))
}

/// The number in the name of an architecture: 90 of `sm_90a`.
fn version(name: &str) -> Option<u32> {
    name.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}
