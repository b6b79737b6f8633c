//! Problems from seeds: small ones of every kind, and large ones in the form of networks.

use tilewright_layout::solver::{Alternative, Call, Cost, Problem, Tensor, Use};

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A number in `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn cost(&mut self, most: u64, forbidden: u64) -> Cost {
        if self.chance(forbidden) { Cost::FORBIDDEN } else { self.below(most + 1).into() }
    }
}

/// A problem of up to so many calls with up to four alternatives. Calls may read the same tensor in
/// one layout or two, write two tensors, and have forbidden alternatives; some tensors have
/// forbidden conversions; some results are required. A few of these problems have no plan.
pub fn small(seed: u64, calls: usize) -> Problem {
    let mut random = Random::new(seed);
    let most = [3, 20, 1_000_000][random.index(3)];
    let forbidden = [0, 5, 25, 50][random.index(4)];
    let layouts = 1 + random.index(4);
    let mut problem = Problem::default();
    let tensor = |random: &mut Random, tensors: &mut Vec<Tensor>, given: bool| {
        let layouts = 1 + random.index(layouts);
        let conversions =
            (0..layouts).map(|_| (0..layouts).map(|_| random.cost(most, forbidden)).collect());
        let conversions = conversions.collect();
        let given = given.then(|| random.index(layouts));
        let required = if random.chance(25) { vec![random.index(layouts)] } else { Vec::new() };
        let name = format!("t{}", tensors.len());
        let layouts = (0..layouts).map(|l| format!("l{l}")).collect();
        tensors.push(Tensor { name, layouts, given, required, conversions });
    };
    for _ in 0..1 + random.index(2) {
        tensor(&mut random, &mut problem.tensors, true);
    }
    for c in 0..1 + random.index(calls) {
        let inputs: Vec<usize> =
            (0..1 + random.index(3)).map(|_| random.index(problem.tensors.len())).collect();
        let first = problem.tensors.len();
        for _ in 0..1 + usize::from(random.chance(15)) {
            tensor(&mut random, &mut problem.tensors, false);
        }
        let outputs = first..problem.tensors.len();
        let alternatives = (0..1 + random.index(4)).map(|a| {
            let cost = random.cost(most, forbidden / 2);
            let mut any = |tensor: usize| {
                let layout = random.index(problem.tensors[tensor].layouts.len());
                Use { tensor, layout }
            };
            let reads = inputs.iter().map(|&t| any(t)).collect();
            let writes = outputs.clone().map(any).collect();
            Alternative { name: format!("a{a}"), cost, reads, writes }
        });
        let alternatives = alternatives.collect();
        problem.calls.push(Call { name: format!("c{c}"), alternatives });
    }
    let last = problem.tensors.len() - 1;
    if problem.tensors[last].required.is_empty() {
        let layout = random.index(problem.tensors[last].layouts.len());
        problem.tensors[last].required.push(layout);
    }
    problem
}

/// A problem of which elimination alone has to make large tables: each call reads everything before.
pub fn tangled(seed: u64, calls: usize) -> Problem {
    let mut random = Random::new(seed);
    let most = [6, 1000][random.index(2)];
    let layouts = 2 + random.index(2);
    let mut problem = Problem::default();
    for t in 0..=calls {
        let row = |random: &mut Random| (0..layouts).map(|_| random.cost(most, 3)).collect();
        let conversions = (0..layouts).map(|_| row(&mut random)).collect();
        let given = (t == 0).then_some(0);
        let required = if t == calls { vec![0] } else { Vec::new() };
        let names = (0..layouts).map(|l| format!("l{l}")).collect();
        let name = format!("t{t}");
        problem.tensors.push(Tensor { name, layouts: names, given, required, conversions });
    }
    for c in 0..calls {
        let alternatives = (0..2 + random.index(3)).map(|a| {
            let cost = random.cost(most, 3);
            let reads = (0..=c).map(|tensor| Use { tensor, layout: random.index(layouts) });
            let reads = reads.collect();
            let writes = vec![Use { tensor: c + 1, layout: random.index(layouts) }];
            Alternative { name: format!("a{a}"), cost, reads, writes }
        });
        let alternatives = alternatives.collect();
        problem.calls.push(Call { name: format!("c{c}"), alternatives });
    }
    problem
}

/// A network under construction: all tensors have four layouts.
struct Builder {
    random: Random,
    problem: Problem,
    calls: usize,
}

const LAYOUTS: [&str; 4] = ["nchw", "nhwc", "nchw8c", "nchw16c"];

impl Builder {
    fn full(&self) -> bool {
        self.problem.calls.len() >= self.calls
    }

    fn tensor(&mut self, given: Option<usize>) -> usize {
        // Picoseconds for the elements of an activation.
        let bytes = 200_000 + self.random.below(2_000_000);
        let conversions = (0..4).map(|i| (0..4).map(move |j| if i == j { 0 } else { 40 * bytes }));
        let conversions = conversions
            .map(|row| row.map(|cost| (cost + self.random.below(cost / 4 + 1)).into()).collect());
        let conversions = conversions.collect();
        let name = format!("t{}", self.problem.tensors.len());
        let layouts = LAYOUTS.map(String::from).to_vec();
        let required = Vec::new();
        self.problem.tensors.push(Tensor { name, layouts, given, required, conversions });
        self.problem.tensors.len() - 1
    }

    /// A call whose alternatives read all inputs in one layout and write in one.
    fn call(
        &mut self,
        inputs: &[usize],
        pairs: &[(usize, usize)],
        cost: u64,
        spread: u64,
    ) -> usize {
        let output = self.tensor(None);
        let mut alternatives = Vec::new();
        for &(from, to) in pairs {
            let cost = (cost + self.random.below(cost * spread / 100 + 1)).into();
            let name = format!("{}_{}", LAYOUTS[from], LAYOUTS[to]);
            let reads = inputs.iter().map(|&tensor| Use { tensor, layout: from }).collect();
            let writes = vec![Use { tensor: output, layout: to }];
            alternatives.push(Alternative { name, cost, reads, writes });
        }
        let name = format!("c{}", self.problem.calls.len());
        self.problem.calls.push(Call { name, alternatives });
        output
    }

    fn convolution(&mut self, input: usize) -> usize {
        let pairs = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 2), (0, 3)];
        let cost = 50_000_000 + self.random.below(800_000_000);
        self.call(&[input], &pairs, cost, 80)
    }

    fn pointwise(&mut self, inputs: &[usize]) -> usize {
        let pairs = [(0, 0), (1, 1), (2, 2), (3, 3)];
        let cost = 5_000_000 + self.random.below(20_000_000);
        self.call(inputs, &pairs, cost, 20)
    }

    fn residual(&mut self, input: usize) -> usize {
        let inner = self.convolution(input);
        let outer = self.convolution(inner);
        self.pointwise(&[input, outer])
    }

    fn inception(&mut self, input: usize) -> usize {
        let branches: Vec<usize> = (0..2 + self.random.index(3))
            .map(|_| {
                let depth = 1 + self.random.index(3);
                (0..depth).fold(input, |tensor, _| self.convolution(tensor))
            })
            .collect();
        self.pointwise(&branches)
    }

    /// Each layer reads everything before it in the block.
    fn dense(&mut self, input: usize, layers: usize) -> usize {
        let mut features = vec![input];
        for _ in 0..layers {
            let joined = self.pointwise(&features);
            let new = self.convolution(joined);
            features.push(new);
        }
        self.pointwise(&features)
    }
}

/// A network of about so many calls: residual, inception and dense blocks in a chain, with four
/// layouts for each tensor.
pub fn network(seed: u64, calls: usize, layers: usize) -> Problem {
    let random = Random::new(seed);
    let mut builder = Builder { random, problem: Problem::default(), calls };
    let mut tensor = builder.tensor(Some(0));
    let mut block = 0;
    while !builder.full() {
        tensor = match block % 3 {
            0 => builder.residual(tensor),
            1 => builder.inception(tensor),
            _ => builder.dense(tensor, layers),
        };
        block += 1;
    }
    builder.problem.tensors[tensor].required.push(0);
    builder.problem
}
