//! The CPUs that LLVM knows, with the features that generated code may use on them.
//!
//! From LLVM 22, as `rustc --print target-cpus` and `--print cfg` show it, under LLVM's names.
//! Features that only say how the system uses the CPU are left out, as are CPUs without 64-bit mode:
//! for those LLVM ends the process. CPUs of RISC-V are those on which Linux runs: what their triples
//! always have (`m`, `a`, `f`, `d`, `c`) is not stated.

/// CPUs with the same features and caches.
pub(crate) struct Cpu {
    /// As LLVM calls them, separated by blanks.
    pub names: &'static str,
    /// The first version of LLVM that knows them; 0 where all do that can be used.
    pub since: u32,
    /// The KiB of their first and second level of caches, which are known of few; else zeros. The third
    /// level differs from model to model of one name.
    pub caches: (usize, usize),
    /// A CPU whose features they have, or nothing.
    pub like: &'static str,
    /// Their further features, separated by blanks.
    pub more: &'static str,
}

impl Cpu {
    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_whitespace()
    }
}

/// Of x86-64.
#[rustfmt::skip]
pub(crate) const X86_64: &[Cpu] = &[
    Cpu { names: "athlon-fx athlon64 k8 opteron x86-64", since: 0, caches: (0, 0), like: "", more: "" },
    Cpu { names: "athlon64-sse3 k8-sse3 nocona opteron-sse3", since: 0, caches: (0, 0), like: "athlon-fx", more: "cx16 sse3" },
    Cpu { names: "core2 core_2_duo_ssse3", since: 0, caches: (32, 4096), like: "athlon64-sse3", more: "ssse3" },
    Cpu { names: "atom bonnell", since: 0, caches: (0, 0), like: "core2", more: "movbe" },
    Cpu { names: "core_2_duo_sse4_1 penryn", since: 0, caches: (0, 0), like: "core2", more: "sse4.1" },
    Cpu { names: "amdfam10 barcelona", since: 0, caches: (0, 0), like: "athlon64-sse3", more: "lzcnt popcnt sse4a" },
    Cpu { names: "btver1", since: 0, caches: (0, 0), like: "amdfam10", more: "ssse3" },
    Cpu { names: "core_i7_sse4_2 corei7 x86-64-v2", since: 0, caches: (0, 0), like: "core_2_duo_sse4_1", more: "popcnt sse4.2" },
    Cpu { names: "nehalem", since: 0, caches: (32, 256), like: "core_i7_sse4_2", more: "" },
    Cpu { names: "core_aes_pclmulqdq westmere", since: 0, caches: (0, 0), like: "core_i7_sse4_2", more: "pclmul" },
    Cpu { names: "core_2nd_gen_avx corei7-avx", since: 0, caches: (0, 0), like: "core_aes_pclmulqdq", more: "avx" },
    Cpu { names: "sandybridge", since: 0, caches: (32, 256), like: "core_2nd_gen_avx", more: "" },
    Cpu { names: "atom_sse4_2 silvermont slm", since: 0, caches: (0, 0), like: "core_aes_pclmulqdq", more: "movbe rdrnd" },
    Cpu { names: "core-avx-i core_3rd_gen_avx", since: 0, caches: (0, 0), like: "core_2nd_gen_avx", more: "f16c rdrnd" },
    Cpu { names: "ivybridge", since: 0, caches: (32, 256), like: "core-avx-i", more: "" },
    Cpu { names: "atom_sse4_2_movbe goldmont goldmont-plus goldmont_plus", since: 0, caches: (0, 0), like: "atom_sse4_2", more: "aes rdseed sha" },
    Cpu { names: "tremont", since: 0, caches: (0, 0), like: "atom_sse4_2_movbe", more: "gfni" },
    Cpu { names: "bdver1", since: 0, caches: (0, 0), like: "core_2nd_gen_avx", more: "aes fma4 lwp lzcnt sse4a xop" },
    Cpu { names: "btver2", since: 0, caches: (0, 0), like: "core_2nd_gen_avx", more: "aes bmi f16c lzcnt movbe sse4a" },
    Cpu { names: "x86-64-v3", since: 0, caches: (0, 0), like: "core_i7_sse4_2", more: "avx avx2 bmi bmi2 f16c fma lzcnt movbe" },
    Cpu { names: "core-avx2 core_4th_gen_avx core_4th_gen_avx_tsx", since: 0, caches: (0, 0), like: "x86-64-v3", more: "pclmul rdrnd" },
    Cpu { names: "haswell", since: 0, caches: (32, 256), like: "core-avx2", more: "" },
    Cpu { names: "bdver2 bdver3", since: 0, caches: (0, 0), like: "bdver1", more: "bmi f16c fma tbm" },
    Cpu { names: "broadwell core_5th_gen_avx core_5th_gen_avx_tsx", since: 0, caches: (32, 256), like: "core-avx2", more: "adx rdseed" },
    Cpu { names: "skylake", since: 0, caches: (32, 256), like: "broadwell", more: "aes" },
    Cpu { names: "x86-64-v4", since: 0, caches: (0, 0), like: "x86-64-v3", more: "avx512bw avx512cd avx512dq avx512f avx512vl" },
    Cpu { names: "knl mic_avx512", since: 0, caches: (0, 0), like: "skylake", more: "avx512cd avx512f" },
    Cpu { names: "znver1 znver2", since: 0, caches: (32, 512), like: "skylake", more: "sha sse4a" },
    Cpu { names: "bdver4", since: 0, caches: (0, 0), like: "bdver2", more: "avx2 bmi2 movbe rdrnd" },
    Cpu { names: "knm", since: 0, caches: (0, 0), like: "knl", more: "avx512vpopcntdq" },
    Cpu { names: "znver3", since: 0, caches: (32, 512), like: "znver1", more: "vaes vpclmulqdq" },
    Cpu { names: "skx skylake_avx512", since: 0, caches: (0, 0), like: "knl", more: "avx512bw avx512dq avx512vl" },
    Cpu { names: "skylake-avx512", since: 0, caches: (32, 1024), like: "skx", more: "" },
    Cpu { names: "cascadelake", since: 0, caches: (32, 1024), like: "skx", more: "avx512vnni" },
    Cpu { names: "alderlake meteorlake", since: 0, caches: (48, 1280), like: "skylake", more: "avxvnni gfni kl sha vaes vpclmulqdq widekl" },
    Cpu { names: "cooperlake", since: 0, caches: (32, 1024), like: "cascadelake", more: "avx512bf16" },
    Cpu { names: "gracemont", since: 17, caches: (48, 1280), like: "alderlake", more: "" },
    Cpu { names: "raptorlake", since: 0, caches: (48, 2048), like: "alderlake", more: "" },
    Cpu { names: "cannonlake", since: 0, caches: (32, 256), like: "skx", more: "avx512ifma avx512vbmi sha" },
    Cpu { names: "arrowlake", since: 17, caches: (0, 0), like: "alderlake", more: "avxifma avxneconvert avxvnniint8" },
    Cpu { names: "grandridge sierraforest", since: 0, caches: (0, 0), like: "arrowlake", more: "" },
    Cpu { names: "clearwaterforest pantherlake",
          since: 18, caches: (0, 0), like: "skylake", more: "avxifma avxneconvert avxvnni avxvnniint16 avxvnniint8 gfni sha sha512 sm3 sm4 vaes vpclmulqdq" },
    Cpu { names: "wildcatlake", since: 22, caches: (0, 0), like: "clearwaterforest", more: "" },
    Cpu { names: "arrowlake-s arrowlake_s lunarlake", since: 17, caches: (0, 0), like: "clearwaterforest", more: "kl widekl" },
    Cpu { names: "icelake-client icelake_client icelake_server rocketlake",
          since: 0, caches: (48, 512), like: "cannonlake", more: "avx512bitalg avx512vbmi2 avx512vnni avx512vpopcntdq gfni vaes vpclmulqdq" },
    Cpu { names: "icelake-server", since: 0, caches: (48, 1280), like: "icelake-client", more: "" },
    Cpu { names: "tigerlake", since: 0, caches: (48, 1280), like: "icelake-client", more: "avx512vp2intersect" },
    Cpu { names: "znver4", since: 0, caches: (32, 1024), like: "icelake-client", more: "avx512bf16 sse4a" },
    Cpu { names: "emeraldrapids graniterapids sapphirerapids", since: 0, caches: (48, 2048), like: "icelake-client", more: "avx512bf16 avx512fp16 avxvnni" },
    Cpu { names: "graniterapids-d graniterapids_d", since: 17, caches: (48, 2048), like: "emeraldrapids", more: "" },
    Cpu { names: "znver5", since: 20, caches: (48, 1024), like: "znver4", more: "avx512vp2intersect avxvnni" },
    Cpu { names: "diamondrapids", since: 20, caches: (0, 0), like: "emeraldrapids", more: "avxifma avxneconvert avxvnniint16 avxvnniint8 egpr sha512 sm3 sm4" },
    Cpu { names: "novalake", since: 22, caches: (0, 0), like: "diamondrapids", more: "" },
];

/// Of AArch64.
#[rustfmt::skip]
pub(crate) const AARCH64: &[Cpu] = &[
    Cpu { names: "generic", since: 0, caches: (0, 0), like: "", more: "neon" },
    Cpu { names: "apple-a7", since: 0, caches: (0, 0), like: "generic", more: "aes pmuv3 sha2" },
    Cpu { names: "cortex-a34 cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73 exynos-m3 kryo thunderx thunderxt81 thunderxt83 thunderxt88",
          since: 0, caches: (0, 0), like: "apple-a7", more: "crc" },
    Cpu { names: "falkor", since: 0, caches: (0, 0), like: "cortex-a34", more: "rdm" },
    Cpu { names: "apple-a10", since: 0, caches: (0, 0), like: "falkor", more: "lor pan vh" },
    Cpu { names: "thunderx2t99", since: 0, caches: (0, 0), like: "generic", more: "aes crc lor lse pan rdm sha2 vh" },
    Cpu { names: "carmel", since: 0, caches: (0, 0), like: "thunderx2t99", more: "dpb fp16 ras" },
    Cpu { names: "apple-a11", since: 0, caches: (0, 0), like: "carmel", more: "pmuv3" },
    Cpu { names: "exynos-m4 exynos-m5", since: 0, caches: (0, 0), like: "apple-a11", more: "dotprod" },
    Cpu { names: "a64fx", since: 0, caches: (64, 8192), like: "apple-a11", more: "fcma sve sve512b" },
    Cpu { names: "cortex-a55 cortex-a75", since: 0, caches: (0, 0), like: "exynos-m4", more: "rcpc" },
    Cpu { names: "cortex-a65 cortex-a65ae cortex-a76 cortex-a76ae cortex-a77 neoverse-e1", since: 0, caches: (0, 0), like: "cortex-a55", more: "ssbs" },
    Cpu { names: "cortex-a78 cortex-a78ae cortex-x1", since: 0, caches: (0, 0), like: "cortex-a65", more: "spe" },
    Cpu { names: "neoverse-n1", since: 0, caches: (64, 1024), like: "cortex-a78", more: "" },
    Cpu { names: "thunderx3t110", since: 0, caches: (0, 0), like: "apple-a10", more: "dpb fcma jsconv lse paca pacg ras rcpc" },
    Cpu { names: "apple-a12", since: 0, caches: (0, 0), like: "thunderx3t110", more: "fp16" },
    Cpu { names: "tsv110", since: 0, caches: (0, 0), like: "exynos-m4", more: "fcma fhm jsconv spe" },
    Cpu { names: "cortex-a78c", since: 0, caches: (0, 0), like: "cortex-a78", more: "flagm paca pacg" },
    Cpu { names: "cortex-x1c", since: 0, caches: (0, 0), like: "cortex-a78c", more: "rcpc2" },
    Cpu { names: "cortex-r82 cortex-r82ae",
          since: 0, caches: (0, 0), like: "generic", more: "crc dit dotprod dpb dpb2 fcma fhm flagm fp16 jsconv lse paca pacg pan pmuv3 ras rcpc rcpc2 rdm sb ssbs" },
    Cpu { names: "saphira", since: 0, caches: (0, 0), like: "thunderx3t110", more: "dit dotprod flagm rcpc2 spe" },
    Cpu { names: "apple-a13", since: 0, caches: (0, 0), like: "apple-a12", more: "dit dotprod fhm flagm rcpc2 sha3" },
    Cpu { names: "apple-a14", since: 0, caches: (0, 0), like: "apple-a13", more: "dpb2 frintts sb ssbs" },
    Cpu { names: "ampere1", since: 0, caches: (0, 0), like: "apple-a12", more: "bf16 bti dit dotprod dpb2 flagm frintts i8mm rand rcpc2 sb sha3 ssbs" },
    Cpu { names: "apple-a15 apple-a16 apple-a17 apple-m4", since: 0, caches: (0, 0), like: "apple-a14", more: "bf16 bti i8mm" },
    Cpu { names: "c1-nano cortex-a320 cortex-a510 cortex-a520 cortex-a520ae cortex-a710 cortex-x2",
          since: 0, caches: (0, 0), like: "cortex-r82", more: "bf16 bti frintts i8mm lor mte sve sve2 vh" },
    Cpu { names: "neoverse-n2", since: 0, caches: (64, 1024), like: "c1-nano", more: "" },
    Cpu { names: "apple-m5", since: 0, caches: (0, 0), like: "apple-a15", more: "mte" },
    Cpu { names: "c1-premium c1-pro c1-ultra cortex-a715 cortex-a720 cortex-a720ae cortex-a725 cortex-x3 cortex-x4 cortex-x925",
          since: 0, caches: (0, 0), like: "c1-nano", more: "spe" },
    Cpu { names: "neoverse-512tvb", since: 0, caches: (0, 0), like: "apple-a13", more: "bf16 dpb2 i8mm rand sm4 spe ssbs sve" },
    Cpu { names: "neoverse-v1", since: 0, caches: (64, 1024), like: "neoverse-512tvb", more: "sve256b" },
    Cpu { names: "ampere1a ampere1b", since: 0, caches: (0, 0), like: "ampere1", more: "mte sm4" },
    Cpu { names: "neoverse-n3 neoverse-v3 neoverse-v3ae", since: 0, caches: (0, 0), like: "c1-premium", more: "rand" },
    Cpu { names: "neoverse-v2", since: 0, caches: (64, 2048), like: "neoverse-n3", more: "" },
    Cpu { names: "oryon-1", since: 0, caches: (0, 0), like: "ampere1", more: "fhm sm4 spe" },
    Cpu { names: "fujitsu-monaka", since: 0, caches: (0, 0), like: "ampere1", more: "fhm sm4 sve sve2 sve256b" },
    Cpu { names: "ampere1c", since: 0, caches: (0, 0), like: "ampere1", more: "fhm mte sm4 sve sve2" },
    Cpu { names: "gb10 grace", since: 0, caches: (0, 0), like: "apple-m5", more: "sm4 spe sve sve2" },
    Cpu { names: "olympus", since: 0, caches: (0, 0), like: "ampere1c", more: "spe" },
];

/// Of 64-bit RISC-V.
#[rustfmt::skip]
pub(crate) const RISCV64: &[Cpu] = &[
    Cpu { names: "generic-rv64 rocket-rv64 sifive-u54 sifive-u74", since: 0, caches: (32, 256), like: "", more: "" },
    Cpu { names: "sifive-p550", since: 19, caches: (32, 256), like: "generic-rv64", more: "zba zbb" },
    Cpu { names: "sifive-p450", since: 18, caches: (32, 256), like: "sifive-p550", more: "zbs zfhmin" },
    Cpu { names: "sifive-p670", since: 18, caches: (32, 256), like: "sifive-p450", more: "v zvl128b" },
    Cpu { names: "sifive-p470", since: 19, caches: (32, 256), like: "sifive-p670", more: "" },
    Cpu { names: "sifive-x280", since: 0, caches: (32, 256), like: "sifive-p550", more: "v zfh zfhmin zvfh zvl128b zvl256b zvl512b" },
    Cpu { names: "spacemit-x60", since: 19, caches: (32, 512), like: "sifive-p450", more: "v zfh zicond zvfh zvl128b zvl256b" },
    Cpu { names: "veyron-v1", since: 18, caches: (0, 0), like: "sifive-p550", more: "zbs" },
    Cpu { names: "xiangshan-nanhu", since: 18, caches: (0, 0), like: "veyron-v1", more: "" },
    Cpu { names: "xiangshan-kunminghu", since: 20, caches: (0, 0), like: "sifive-p670", more: "zfh zicond zvfh" },
    Cpu { names: "tt-ascalon-d8", since: 20, caches: (0, 0), like: "xiangshan-kunminghu", more: "zvl256b" },
];
