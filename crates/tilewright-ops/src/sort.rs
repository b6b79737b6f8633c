//! The rows of a matrix in the order of their elements, column by column, by merging.
//!
//! Runs of one row each are merged in pairs until one run is left; of equal rows the earlier one comes
//! first. The runs are positions of rows; where rows have one element each, its rank is kept beside, so
//! that one comparison of numbers decides. `n` rows take `O(n log n)` comparisons, and memory for two
//! lists of them.

use tilewright_ir::{Buffer, DType, Dim, Expr, Stmt};

use crate::keys::rank;
use crate::loops::{each, get, load, one_cell, set, store, with};
use crate::operand::before;

/// A matrix whose rows are sorted.
pub(crate) struct Rows {
    from: Buffer,
    n: Dim,
    m: Dim,
    /// The rows in order, and what they are merged into.
    lists: [List; 2],
    /// How two rows compare: less than zero, zero or more.
    order: Buffer,
    /// How long runs are.
    width: Buffer,
    merge: Merge,
}

/// Rows in some order.
struct List {
    positions: Buffer,
    /// The ranks of their elements, where each has one.
    keys: Option<Buffer>,
}

/// Where the merging of two runs is, which goes on from both ends: two chains of steps that do not wait
/// for one another.
struct Merge {
    /// Where the first run begins, where it ends and the second one begins, and where that ends.
    begin: Buffer,
    middle: Buffer,
    end: Buffer,
    /// The next row of each run, and where what is left of it ends.
    next: [Buffer; 2],
    last: [Buffer; 2],
    /// The next place to fill, and where the places that are not filled end.
    head: Buffer,
    tail: Buffer,
}

impl Rows {
    /// The rows of a matrix of these extents.
    pub(crate) fn new(from: &Buffer, [n, m]: [Dim; 2]) -> Rows {
        let list = |positions: &str, keys: &str| {
            let of = |name: &str, dtype| Buffer::new(name, vec![n.expr()], dtype);
            let keys = (m == 1).then(|| of(keys, DType::I64));
            List { positions: of(positions, DType::I32), keys }
        };
        let cell = |name: &str| one_cell(name, DType::I32);
        Rows {
            from: from.clone(),
            n,
            m,
            lists: [list("rows", "keys"), list("merged", "merged_keys")],
            order: cell("order"),
            width: cell("width"),
            merge: Merge {
                begin: cell("begin"),
                middle: cell("middle"),
                end: cell("end"),
                next: ["first", "second"].map(cell),
                last: ["first_last", "second_last"].map(cell),
                head: cell("head"),
                tail: cell("tail"),
            },
        }
    }

    /// The memory that sorting takes.
    pub(crate) fn allocs(&self) -> Vec<Buffer> {
        let Merge { begin, middle, end, next: [a, b], last: [c, d], head, tail } = &self.merge;
        let cells = [&self.order, &self.width, begin, middle, end, a, b, c, d, head, tail];
        let cells = cells.map(Buffer::clone);
        let lists = self.lists.iter();
        let lists = lists.flat_map(|l| [l.positions.clone()].into_iter().chain(l.keys.clone()));
        lists.chain(cells).collect()
    }

    /// The row at a place of the order.
    pub(crate) fn position(&self, place: &Expr) -> Expr {
        self.within(load(&self.lists[0].positions, &[place]))
    }

    /// A statement that sees whether the row at a place of the order differs from the one before.
    pub(crate) fn compared(&self, place: &Expr, body: impl FnOnce(Expr) -> Stmt) -> Stmt {
        let above = (place.clone() - 1).max(0);
        let (compare, is_less) = self.less(&self.lists[0], &above, place);
        Stmt::seq([compare, body(place.clone().equal(0).or(is_less))])
    }

    /// Sorts the rows.
    pub(crate) fn sort(&self) -> Stmt {
        let [list, other] = &self.lists;
        let start = each("i", self.n, |i| {
            let row = store(&list.positions, &[i], i.clone());
            let key = |keys| store(keys, &[i], rank(&load(&self.from, &[i, &Expr::i32(0)])));
            Stmt::seq([row].into_iter().chain(list.keys.as_ref().map(key)))
        });
        // As many as any number of rows takes, where it is open.
        let levels = self.n.known().map_or(31, |n| n.max(1).next_power_of_two().ilog2());
        let merge = each("level", levels.div_ceil(2) as usize, |_| {
            let both = Stmt::seq([self.pass(list, other), self.pass(other, list)]);
            Stmt::guard(get(&self.width).less(self.n.expr()), both)
        });
        Stmt::seq([start, set(&self.width, Expr::i32(1)), merge])
    }

    /// Merges the runs of a list in pairs.
    fn pass(&self, from: &List, to: &List) -> Stmt {
        let Merge { begin, middle, end, next, last, head, tail } = &self.merge;
        with("width", get(&self.width), |width| {
            // The size of a pair, which is never more than that of all.
            with("span", width.clone() + width.clone().min(self.n.expr() - width), |span| {
                // No pair but the last one has an odd number of rows.
                let merge = each("step", self.n.ceildiv(2), |_| {
                    let upto = |size: &Expr| {
                        let left = self.n.expr() - get(begin);
                        get(begin) + size.clone().min(left)
                    };
                    let pair = Stmt::seq([
                        set(begin, get(end)),
                        set(middle, upto(width)),
                        set(end, upto(span)),
                        set(&next[0], get(begin)),
                        set(&last[0], get(middle)),
                        set(&next[1], get(middle)),
                        set(&last[1], get(end)),
                        set(head, get(begin)),
                        set(tail, get(end)),
                    ]);
                    Stmt::seq([
                        Stmt::guard(get(head).greater_equal(get(tail)), pair),
                        self.take_least(from, to),
                        self.take_greatest(from, to),
                    ])
                });
                let start = [end, head, tail].map(|cell| set(cell, Expr::i32(0)));
                Stmt::seq(start.into_iter().chain([merge, set(&self.width, span.clone())]))
            })
        })
    }

    /// Moves the lesser one of the first rows of two runs to the first free place.
    fn take_least(&self, from: &List, to: &List) -> Stmt {
        let Merge { middle, end, next, head, .. } = &self.merge;
        let places = [0, 1].map(|run| get(&next[run]));
        self.choose(from, places, |[first, second], is_less| {
            let is_first_over = get(&next[0]).greater_equal(get(middle));
            let is_second = get(&next[1]).less(get(end)).and(is_first_over.or(is_less));
            with("taken", is_second.cast(DType::I32), |taken| {
                let place = Expr::select(taken.clone().equal(1), second.clone(), first.clone());
                Stmt::seq([
                    self.copy(from, to, &place, get(head)),
                    set(&next[0], get(&next[0]) + (Expr::i32(1) - taken)),
                    set(&next[1], get(&next[1]) + taken),
                    set(head, get(head) + 1),
                ])
            })
        })
    }

    /// Moves the greater one of the last rows of two runs to the last free place.
    fn take_greatest(&self, from: &List, to: &List) -> Stmt {
        let Merge { begin, middle, last, tail, .. } = &self.merge;
        let places = [0, 1].map(|run| get(&last[run]) - 1);
        self.choose(from, places, |[first, second], is_less| {
            let is_second_over = get(&last[1]).less_equal(get(middle));
            let is_first = get(&last[0]).greater(get(begin)).and(is_second_over.or(is_less));
            with("taken", is_first.cast(DType::I32), |taken| {
                let place = Expr::select(taken.clone().equal(1), first.clone(), second.clone());
                Stmt::seq([
                    self.copy(from, to, &place, get(tail) - 1),
                    set(&last[0], get(&last[0]) - taken),
                    set(&last[1], get(&last[1]) - (Expr::i32(1) - taken)),
                    set(tail, get(tail) - 1),
                ])
            })
        })
    }

    /// A statement that sees a place in each of two runs, and whether the row at the second is less than that at
    /// the first.
    fn choose(
        &self,
        from: &List,
        [first, second]: [Expr; 2],
        body: impl FnOnce([&Expr; 2], &Expr) -> Stmt,
    ) -> Stmt {
        with("u", self.within(first), |first| {
            with("v", self.within(second), |second| {
                let (compare, is_less) = self.less(from, second, first);
                let is_less = with("is_less", is_less, |is_less| body([first, second], is_less));
                Stmt::seq([compare, is_less])
            })
        })
    }

    /// Copies a row of a list to a place of another one.
    fn copy(&self, from: &List, to: &List, place: &Expr, at: Expr) -> Stmt {
        with("place", place.clone(), |place| {
            with("at", self.within(at), |at| {
                let row = store(&to.positions, &[at], load(&from.positions, &[place]));
                let keys = from.keys.iter().zip(&to.keys);
                let keys = keys.map(|(a, b)| store(b, &[at], load(a, &[place])));
                Stmt::seq([row].into_iter().chain(keys))
            })
        })
    }

    /// Whether the row at one place of a list is less than that at another, after a statement.
    fn less(&self, list: &List, a: &Expr, b: &Expr) -> (Stmt, Expr) {
        if let Some(keys) = &list.keys {
            return (Stmt::nop(), load(keys, &[a]).less(load(keys, &[b])));
        }
        let order = &self.order;
        let [a, b] = [a, b].map(|at| self.within(load(&list.positions, &[at])));
        let compare = with("a", a, |a| {
            with("b", b, |b| {
                let columns = each("c", self.m, |c| {
                    let (x, y) = (load(&self.from, &[a, c]), load(&self.from, &[b, c]));
                    let less = set(order, Expr::i32(-1));
                    let more = Stmt::guard(before(y.clone(), x.clone()), set(order, Expr::i32(1)));
                    let decide = Stmt::if_else(before(x, y), less, more);
                    Stmt::guard(get(order).equal(0), decide)
                });
                Stmt::seq([set(order, Expr::i32(0)), columns])
            })
        });
        (compare, get(order).less(0))
    }

    /// A place or a row, which is one of them, although that is not seen.
    fn within(&self, at: Expr) -> Expr {
        at.min(self.n.expr() - 1).max(0)
    }
}
