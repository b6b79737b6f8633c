//! The pages of `docs/guide` on the command line: their files and commands, as they are printed.
//!
//! A block of C or Python begins with the name of its file in a comment. A block `sh` runs in the folder
//! of these files, which has the examples; the next block without a language is its standard output.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Scratch, program};

/// A block of code on a page.
struct Block<'a> {
    line: usize,
    language: &'a str,
    text: String,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { line: number + 1, language, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

/// The name of the file that a block of code is.
fn file_name(block: &Block<'_>) -> String {
    let first = block.text.lines().next().unwrap_or_default();
    let name = first.trim_start_matches(['/', '*', '#', ' ']).split(' ').next();
    name.filter(|name| name.contains('.')).map(str::to_owned).expect("the name of a file")
}

/// The standard output of commands in a folder, which must succeed.
fn output(commands: &str, folder: &str, place: &str) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_tilewright")).parent().expect("a folder");
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(PathBuf::from(own)).chain(std::env::split_paths(&others));
    let mut shell = Command::new("sh");
    shell.envs(program().get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PATH", std::env::join_paths(path).expect("folders"));
    let done = shell.args(["-ec", commands]).current_dir(folder).output().expect("a shell");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{place}: {said}");
    String::from_utf8(done.stdout).expect("text")
}

#[cfg(unix)]
#[test]
fn pages_on_the_command_line_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for page in std::fs::read_dir(root.join("docs/guide")).expect("there is a guide").flatten() {
        let name = page.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".md") {
            continue;
        }
        let page = std::fs::read_to_string(page.path()).expect("text");
        let blocks = blocks(&page);
        if !blocks.iter().any(|block| block.language == "sh") {
            continue;
        }
        count += 1;
        let scratch = Scratch::new();
        let examples = root.join("examples").canonicalize().expect("there are examples");
        std::os::unix::fs::symlink(examples, scratch.path("examples")).expect("a link");
        let mut printed = None;
        for block in &blocks {
            let place = format!("{name}:{}", block.line);
            match block.language {
                "sh" => printed = Some(output(&block.text, &scratch.path(""), &place)),
                "" => assert_eq!(printed.take().as_ref(), Some(&block.text), "{place}"),
                _ => drop(scratch.file(&file_name(block), &block.text)),
            }
        }
    }
    assert!(count >= 2, "{count} pages");
}
