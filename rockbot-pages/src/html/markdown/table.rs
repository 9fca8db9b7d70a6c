//! Tables of data as tables of Markdown. Tables that lay a page out are not tables.

use crate::html::dom::{Dom, NodeId, Step};

/// Maximum number of columns.
const MAX_COLUMNS: usize = 100;

/// Maximum number of rows that one cell fills.
const MAX_ROWSPAN: usize = 200;

/// A table while its cells are read.
#[derive(Debug)]
pub(super) struct Table {
    id: NodeId,
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    /// For each column, the number of further rows that a cell above fills.
    filled: Vec<usize>,
    caption: String,
    span: (usize, usize),
    is_in_cell: bool,
    /// Size of the written cells, in bytes.
    len: usize,
}

impl Table {
    pub(super) fn new(id: NodeId) -> Self {
        Self {
            id,
            rows: Vec::new(),
            row: Vec::new(),
            filled: Vec::new(),
            caption: String::new(),
            span: (1, 1),
            is_in_cell: false,
            len: 0,
        }
    }

    pub(super) fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the size of the written text, in bytes.
    pub(super) fn len(&self) -> usize {
        self.len + self.caption.len()
    }

    /// Returns `true` if the row or cell belongs to this table and not to a table inside of it.
    pub(super) fn is_own(&self, dom: &Dom, id: NodeId) -> bool {
        dom.ancestors(id).find(|parent| dom.name(*parent) == "table") == Some(self.id)
    }

    /// Begins a cell. Text that was written outside of all cells, such as a caption, stands before
    /// the table.
    pub(super) fn begin_cell(&mut self, before: &str, columns: usize, rows: usize) {
        self.rest(before);
        self.span = (columns.clamp(1, MAX_COLUMNS), rows.clamp(1, MAX_ROWSPAN));
        self.is_in_cell = true;
    }

    pub(super) fn end_cell(&mut self, text: &str) {
        self.is_in_cell = false;
        self.skip_filled();
        let (columns, rows) = self.span;
        for column in 0..columns {
            if self.row.len() >= MAX_COLUMNS {
                break;
            }
            let at = self.row.len();
            self.filled.resize(self.filled.len().max(at + 1), 0);
            self.filled[at] = rows - 1;
            let written = if column == 0 { cell_of(text) } else { String::new() };
            self.push(written);
        }
    }

    pub(super) fn end_row(&mut self) {
        self.skip_filled();
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            self.rows.push(row);
        }
    }

    /// Takes text outside of cells.
    pub(super) fn rest(&mut self, text: &str) {
        if !text.is_empty() && !self.is_in_cell {
            self.caption.push_str(if self.caption.is_empty() { "" } else { "\n" });
            self.caption.push_str(text);
        }
    }

    /// Returns the caption and the table; either may be empty.
    pub(super) fn written(mut self) -> (String, String) {
        self.end_row();
        self.rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::from("|");
            for cell in row {
                line.push(' ');
                line.push_str(cell);
                line.push_str(" |");
            }
            lines.push(line);
            if number == 0 {
                lines.push(format!("|{}", " --- |".repeat(columns)));
            }
        }
        (self.caption, lines.join("\n"))
    }

    fn skip_filled(&mut self) {
        while let Some(left) = self.filled.get_mut(self.row.len()).filter(|left| **left > 0) {
            *left -= 1;
            self.push(String::new());
        }
    }

    fn push(&mut self, cell: String) {
        self.len += cell.len() + "|  ".len();
        self.row.push(cell);
    }
}

/// Returns the text of a cell: its lines with breaks between them, and no sign that ends the cell.
fn cell_of(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (number, part) in text
        .split('\n')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .enumerate()
    {
        line.push_str(if number > 0 { "<br>" } else { "" });
        let mut before = ' ';
        for c in part.chars() {
            line.push_str(if c == '|' && before != '\\' { "\\" } else { "" });
            line.push(c);
            before = c;
        }
    }
    line
}

/// Returns `true` for a table with several columns of short texts. Other tables lay blocks out
/// beside each other.
pub(super) fn is_data(dom: &Dom, id: NodeId) -> bool {
    let element = dom.element(id);
    if element.is_some_and(|element| matches!(element.text_of("role"), "presentation" | "none")) {
        return false;
    }
    let mut columns = 0;
    let mut in_row = 0;
    let mut has_header = false;
    for step in dom.walk(id) {
        let Step::Enter(inner) = step else { continue };
        match dom.name(inner) {
            "table" if inner != id => return false,
            "pre" | "h1" | "h2" | "h3" | "h4" | "blockquote" | "article" | "section" | "form" => return false,
            "tr" => in_row = 0,
            "td" => in_row += 1,
            "th" => {
                in_row += 1;
                has_header = true;
            }
            _ => {}
        }
        columns = columns.max(in_row);
    }
    columns > 1 || has_header && columns > 0
}
