//! `tilewright completions` and `tilewright man`: texts for shells and manuals, made from the
//! arguments that the commands take.

use std::io::Write;

use clap::Command;
use clap_complete::Shell;

use super::answer::{Answer, Outcome};

/// Print a script with which a shell completes commands and options.
///
/// For bash: tilewright completions bash > ~/.local/share/bash-completion/completions/tilewright
#[derive(clap::Args)]
pub struct Completions {
    shell: Shell,
}

/// Print the manual page, of the program or of a command.
///
/// To read it: tilewright man run | man -l -
#[derive(clap::Args)]
pub struct Man {
    /// The command; the program unless said.
    command: Option<String>,
}

pub fn completions(arguments: &Completions, mut command: Command, out: &mut impl Write) -> Outcome {
    let name = command.get_name().to_owned();
    // The generator cannot say that writing failed.
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    out.write_all(&text)?;
    Ok(Answer::Yes)
}

pub fn man(arguments: &Man, mut program: Command, out: &mut impl Write) -> Outcome {
    program.build();
    let Some(name) = &arguments.command else {
        clap_mangen::Man::new(program).render(out)?;
        return Ok(Answer::Yes);
    };
    let names: Vec<String> = program.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = program.find_subcommand(name).cloned().ok_or_else(|| {
        let error = tilewright_driver::Error::input(format!("there is no command `{name}`"));
        error.note(format!("the commands are: {}", names.join(", ")))
    })?;
    let title = format!("tilewright-{name}");
    clap_mangen::Man::new(command.display_name(title.clone())).title(title).render(out)?;
    Ok(Answer::Yes)
}
