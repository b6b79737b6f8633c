//! Values between calls in textures: what a plan places there, and what a device makes of it.

use tilewright_driver::pipeline::PipelineStage;
use tilewright_driver::random::Random;
use tilewright_driver::{Executable, LayoutPolicy, Module, Options, compile, print};

use crate::schedules::{chain, image};

/// A module after the stages up to the one that places values in textures.
fn placed(module: &Module, options: &Options) -> Module {
    let stages = PipelineStage::all().filter(|s| *s <= PipelineStage::Textures);
    stages.fold(module.clone(), |module, stage| {
        stage.run(&module, options).unwrap_or_else(|e| panic!("{}", e.render()))
    })
}

fn on(target: &str) -> Option<Options> {
    match Options::new().cache(false).on(target) {
        Ok(options) => Some(options),
        Err(e) if std::env::var_os("TILEWRIGHT_TEST_DEVICE").is_some() => panic!("{}", e.render()),
        Err(e) => {
            eprintln!("a test on a device did not run: {e}");
            None
        }
    }
}

/// Where reads from textures are cheaper, the plan has channels in blocks of a texel, and what one convolution makes
/// for the next lies in a texture, and so do weights; inputs and results do not. A processor keeps buffers.
#[test]
fn plans_place_what_convolutions_hand_on_in_textures() {
    let module = chain(&image(8, 9, 3, 1), 3, &mut Random::new(3));
    let gpu = Options::new().cache(false).on("opencl:generic").expect("a target");
    let text = print(&placed(&module, &gpu));
    assert!(text.contains("scope=\"global.texture\", axis_separators=[3]"), "{text}");
    let weights = "W: T.Buffer((2, 2, 3, 3, 4, 4), \"float32\", scope=\"global.texture-weight\", axis_separators=[4])";
    assert!(text.contains(weights) || text.contains(&weights.replace("W:", "w:")), "{text}");
    for options in [Options::new().cache(false), gpu.layout(LayoutPolicy::AsWritten)] {
        assert!(!print(&placed(&module, &options)).contains("global.texture"));
    }
}

#[test]
fn convolutions_over_textures_compute_the_same() {
    let Some(device) = on("opencl+textures") else { return };
    let threads = on("opencl+textures+threads").expect("the same device");
    for (channels, size, kernel, stride) in [(8, 9, 3, 1), (6, 7, 3, 1), (4, 5, 1, 1), (3, 8, 5, 1)]
    {
        let mut random = Random::new(7);
        let module = chain(&image(channels, size, kernel, stride), 3, &mut random);
        let input =
            random.tensor(tilewright_ir::DType::F32, &[1, channels, size, size]).expect("a tensor");
        let run = |options: &Options| {
            let made: Executable =
                compile(&module, options).unwrap_or_else(|e| panic!("{}", e.render()));
            let run = || made.run(std::slice::from_ref(&input));
            let [first, second] = [run(), run()]
                .map(|all| all.unwrap_or_else(|e| panic!("{}", e.render())).swap_remove(0));
            // Textures of a run before hold nothing of it.
            assert!(first.same(&second));
            first
        };
        let expected = run(&Options::new().cache(false));
        for options in [&device, &threads] {
            // The channels of one texel or less: a buffer may be as good.
            let is_placed = print(&placed(&module, options)).contains("global.texture");
            assert!(is_placed || channels <= 4, "{channels}");
            let found = run(options);
            for k in 0..expected.len() {
                let (x, y) = (found.get_f64(k), expected.get_f64(k));
                assert!((x - y).abs() <= 1e-4 * (1.0 + y.abs()), "{channels}: {k}: {x}, {y}");
            }
        }
    }
}
