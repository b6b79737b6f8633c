//! `--specialize`: versions of a model for some of its sizes.

use std::collections::BTreeMap;

use tilewright_driver::{Error, Result};

/// The sizes that have versions of their own.
#[derive(clap::Args, Default)]
pub struct Versions {
    /// Where sizes stay open: sizes for which versions of their own are compiled beside the one for
    /// all sizes; a run takes what fits. May be given for several dimensions: then for all combinations.
    #[arg(long, value_name = "NAME=SIZE,...", value_parser = special)]
    specialize: Vec<(String, Vec<usize>)>,
}

/// Most versions of a model.
const MOST: usize = 64;

impl Versions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.specialize.is_empty()
    }

    /// The sizes of each version: all combinations.
    pub fn all(&self) -> Result<Vec<BTreeMap<String, usize>>> {
        let mut versions = vec![BTreeMap::new()];
        for (name, sizes) in &self.specialize {
            versions = versions
                .iter()
                .flat_map(|v| sizes.iter().map(move |n| with_size(v, n, name)))
                .collect();
            if versions.len() > MOST {
                return Err(Error::input(format!(
                    "--specialize asks for {} versions or more; {MOST} are possible",
                    versions.len()
                )));
            }
        }
        Ok(if self.is_empty() { Vec::new() } else { versions })
    }
}

fn with_size(
    version: &BTreeMap<String, usize>,
    size: &usize,
    name: &str,
) -> BTreeMap<String, usize> {
    let mut version = version.clone();
    version.insert(name.to_owned(), *size);
    version
}

const EXPECTED: &str = "expected NAME=SIZE,SIZE,...";

/// Reads `NAME=SIZE,SIZE,...`.
fn special(text: &str) -> std::result::Result<(String, Vec<usize>), String> {
    let (name, sizes) = text.rsplit_once('=').filter(|(n, _)| !n.is_empty()).ok_or(EXPECTED)?;
    let sizes = sizes.split(',').map(|size| size.parse().map_err(|_| EXPECTED.to_owned()));
    Ok((name.to_owned(), sizes.collect::<std::result::Result<_, _>>()?))
}
