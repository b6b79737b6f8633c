//! A layout as a page: what is known of it, and its cells in colours.

use std::fmt::Write as _;

use crate::page::CONTENT_POLICY;
use crate::writing::html;

/// A table of cells.
pub struct Cells {
    /// What is shown.
    pub title: String,
    /// Names of the rows and of the columns.
    pub names: [Vec<String>; 2],
    /// By rows: the text of a cell and the number of its colour; `None` for padding.
    pub rows: Vec<Vec<Option<(String, usize)>>>,
}

const STYLE: &str = "
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
code, td, th { font-family: ui-monospace, monospace; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dd { margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; margin: .5rem 0 1.5rem; }
td { border: 1px solid #8886; padding: .1rem .4rem; text-align: right; color: #000; }
td.none { background: repeating-linear-gradient(45deg, #8883 0 4px, transparent 4px 8px); color: inherit; }
th { font-weight: normal; opacity: .7; padding: .1rem .4rem; text-align: right; }
";

/// The page as HTML; facts are pairs of a name and what is said. It loads nothing.
pub fn layout_page(title: &str, facts: &[(String, String)], tables: &[Cells]) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"{CONTENT_POLICY}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <title>{0}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1><code>{0}</code></h1>\n<dl>\n",
        html(title)
    );
    for (name, fact) in facts {
        let _ = writeln!(text, "<dt>{}</dt><dd><code>{}</code></dd>", html(name), html(fact));
    }
    text += "</dl>\n";
    for cells in tables {
        let _ =
            write!(text, "<h2>{}</h2>\n<div class=wide><table>\n<tr><th></th>", html(&cells.title));
        cells.names[1].iter().for_each(|name| text += &format!("<th>{}</th>", html(name)));
        text += "</tr>\n";
        for (k, row) in cells.rows.iter().enumerate() {
            let name = cells.names[0].get(k).map_or("", String::as_str);
            let _ = write!(text, "<tr><th>{}</th>", html(name));
            for cell in row {
                match cell {
                    // Steps of the golden angle keep neighbours apart.
                    Some((value, colour)) => {
                        let hue = (*colour as f64 * 137.508) % 360.0;
                        let _ = write!(
                            text,
                            "<td style=\"background:hsl({hue:.0} 65% 78%)\">{}</td>",
                            html(value)
                        );
                    }
                    None => text += "<td class=none>&middot;</td>",
                }
            }
            text += "</tr>\n";
        }
        text += "</table></div>\n";
    }
    text + "</body>\n</html>\n"
}
