//! The content of a page: a program that writes pieces of text at places.

use std::collections::HashMap;
use std::rc::Rc;

use super::file::File;
use super::font::Font;
use super::layout::{Layout, Point, SPACE};
use super::object::{Dict, Object};
use super::syntax::Lexer;

/// Maximum number of graphics states that are kept.
const MAX_STATES: usize = 256;

/// Maximum depth of forms, one in the other.
const MAX_FORMS: usize = 8;

/// Maximum number of fonts that are kept.
const MAX_FONTS: usize = 64;

/// Flags of annotations that no viewer shows.
const HIDDEN: usize = 0b10_0010;

/// A map of the plane: `[a b c d e f]` as PDF has it.
type Matrix = [f64; 6];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// The fonts of a document that were read, by the numbers of their objects.
pub(super) type Fonts = HashMap<u32, Rc<Font>>;

/// An interpreter of the content of a page, or of a form in it.
pub(super) struct Interpreter<'i> {
    file: &'i File<'i>,
    fonts: &'i mut Fonts,
    layout: &'i mut Layout,
    resources: &'i Dict,
    /// The fonts of `resources`.
    named: HashMap<String, Option<Rc<Font>>>,
    state: State,
    kept: Vec<State>,
    text: Matrix,
    line: Matrix,
    depth: usize,
}

/// The graphics state, as far as it matters to text.
#[derive(Debug, Clone)]
struct State {
    page: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    character_space: f64,
    word_space: f64,
    stretch: f64,
    leading: f64,
}

impl<'i> Interpreter<'i> {
    /// Creates an interpreter for a page with these resources.
    pub(super) fn new(file: &'i File<'i>, fonts: &'i mut Fonts, layout: &'i mut Layout, resources: &'i Dict) -> Self {
        let state = State {
            page: IDENTITY,
            font: None,
            size: 1.0,
            character_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
        };
        Self {
            file,
            fonts,
            layout,
            resources,
            named: HashMap::new(),
            state,
            kept: Vec::new(),
            text: IDENTITY,
            line: IDENTITY,
            depth: 0,
        }
    }

    /// Runs a content, until the page is full or the budget spent.
    pub(super) fn run(&mut self, content: &[u8]) {
        let mut lexer = Lexer::new(content, 0, self.file.budget);
        let mut operands = Vec::new();
        while let Some(object) = lexer.object() {
            match object {
                Object::Word(operator) if operator == "ID" => lexer.skip_image(),
                Object::Word(operator) => self.execute(&operator, &operands),
                operand => {
                    operands.push(operand);
                    continue;
                }
            }
            operands.clear();
            if self.layout.is_full() {
                return;
            }
        }
    }

    fn execute(&mut self, operator: &str, operands: &[Object]) {
        let number = |index: usize| operands.get(index).and_then(Object::number).unwrap_or(0.0);
        let matrix = || std::array::from_fn(number);
        let text = |index: usize| operands.get(index).and_then(Object::text).unwrap_or_default();
        match operator {
            "q" if self.kept.len() < MAX_STATES => self.kept.push(self.state.clone()),
            "Q" => self.state = self.kept.pop().unwrap_or_else(|| self.state.clone()),
            "cm" => self.state.page = product(&matrix(), &self.state.page),
            "BT" => self.set_line(IDENTITY),
            "Tm" => self.set_line(matrix()),
            "Td" => self.move_line(number(0), number(1)),
            "TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            "T*" => self.move_line(0.0, -self.state.leading),
            "Tf" => {
                self.state.font = operands.first().and_then(Object::name).and_then(|name| self.font(name));
                self.state.size = number(1);
            }
            "Tc" => self.state.character_space = number(0),
            "Tw" => self.state.word_space = number(0),
            "Tz" => self.state.stretch = number(0) / 100.0,
            "TL" => self.state.leading = number(0),
            "Tj" => self.show(text(0)),
            "TJ" => self.show_all(operands.first().and_then(Object::array).unwrap_or_default()),
            "'" => {
                self.move_line(0.0, -self.state.leading);
                self.show(text(0));
            }
            "\"" => {
                (self.state.word_space, self.state.character_space) = (number(0), number(1));
                self.move_line(0.0, -self.state.leading);
                self.show(text(2));
            }
            "Do" => self.draw(operands.first().and_then(Object::name).unwrap_or_default()),
            _ => {}
        }
    }

    fn set_line(&mut self, matrix: Matrix) {
        (self.line, self.text) = (matrix, matrix);
    }

    fn move_line(&mut self, x: f64, y: f64) {
        self.set_line(product(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line));
    }

    /// Moves the place of the next glyph along the line.
    fn advance(&mut self, x: f64) {
        self.text = product(&[1.0, 0.0, 0.0, 1.0, x * self.state.stretch, 0.0], &self.text);
    }

    fn show_all(&mut self, pieces: &[Object]) {
        for piece in pieces {
            match piece {
                Object::Text(text) => self.show(text),
                Object::Number(back) => self.advance(-back / 1000.0 * self.state.size),
                _ => {}
            }
        }
    }

    fn show(&mut self, text: &[u8]) {
        let Some(font) = self.state.font.clone() else { return };
        // Writers that shorten contents set a space between two words by the distance of two characters.
        let is_gap = text.len() == 2 && self.state.character_space > 2.0 * SPACE * self.state.size;
        if is_gap && font.glyphs(text).nth(1).is_some() {
            self.show(&text[..1]);
            return self.show(&text[1..]);
        }
        let [a, b, c, d, x, y] = product(&self.text, &self.state.page);
        let length = a.hypot(b);
        self.layout
            .begin((x, y), (a / length, b / length), c.hypot(d) * self.state.size.abs());
        let mut characters = String::new();
        for glyph in font.glyphs(text) {
            characters.clear();
            font.write(glyph, &mut characters);
            self.layout.push(&characters);
            let word_space = if glyph.is_space { self.state.word_space } else { 0.0 };
            self.advance(glyph.width * self.state.size + self.state.character_space + word_space);
        }
        // The space behind the last character does not belong to the piece.
        let next = self.text;
        self.advance(-self.state.character_space);
        self.layout.end(self.place());
        self.text = next;
    }

    fn place(&self) -> Point {
        let [.., x, y] = product(&self.text, &self.state.page);
        (x, y)
    }

    fn font(&mut self, name: &str) -> Option<Rc<Font>> {
        if let Some(font) = self.named.get(name) {
            return font.clone();
        }
        let file = self.file;
        let resources = self.resources;
        let fonts = file.entry(resources, "Font");
        let own = fonts
            .as_deref()
            .and_then(Object::dict)
            .and_then(|fonts| fonts.get(name));
        let id = own.and_then(Object::reference);
        let known = id.and_then(|id| self.fonts.get(&id).cloned());
        let read = || Some(Rc::new(Font::read(file, file.resolve(own?)?.dict()?)));
        let font = known.or_else(read);
        if let (Some(id), Some(font)) = (id, &font) {
            if self.fonts.len() >= MAX_FONTS {
                self.fonts.clear();
            }
            self.fonts.insert(id, font.clone());
        }
        if self.named.len() >= MAX_FONTS {
            self.named.clear();
        }
        self.named.insert(name.to_owned(), font.clone());
        font
    }

    /// Runs the content of a form. An image has none.
    fn draw(&mut self, name: &str) {
        let file = self.file;
        let resources = self.resources;
        let forms = file.entry(resources, "XObject");
        let Some(form) = forms
            .as_deref()
            .and_then(Object::dict)
            .and_then(|forms| forms.get(name))
        else {
            return;
        };
        self.run_form(form);
    }

    /// Runs the appearance of an annotation at its place: the value of a field, a text that was added.
    pub(super) fn annotate(&mut self, annotation: &Dict) {
        let file = self.file;
        let appearance = file.entry(annotation, "AP");
        let normal = appearance
            .as_deref()
            .and_then(Object::dict)
            .and_then(|own| own.get("N"));
        let flags = annotation.get("F").and_then(Object::natural).unwrap_or(0);
        let Some(normal) = normal.filter(|_| flags & HIDDEN == 0) else {
            return;
        };
        // A box to check has an appearance for each of its states.
        let states = file.resolve(normal);
        let state = annotation.get("AS").and_then(Object::name);
        let of_state = state.and_then(|state| states.as_deref()?.dict()?.get(state));
        let place = file.entry(annotation, "Rect");
        let place = place.as_deref().and_then(Object::array).unwrap_or_default();
        let number = |index: usize| place.get(index).and_then(Object::number).unwrap_or(0.0);
        self.state.page = [1.0, 0.0, 0.0, 1.0, number(0), number(1)];
        self.run_form(of_state.unwrap_or(normal));
    }

    fn run_form(&mut self, form: &Object) {
        let file = self.file;
        let resources = self.resources;
        let is_form = |object: &Object| object.dict().and_then(|dict| dict.get("Subtype")?.name()) == Some("Form");
        if self.depth >= MAX_FORMS || !file.resolve(form).is_some_and(|form| is_form(&form)) {
            return;
        }
        let Some((dict, content)) = file.stream(form) else {
            return;
        };
        let own = file.entry(&dict, "Resources");
        let own = own.as_deref().and_then(Object::dict).unwrap_or(resources);
        let matrix = file.entry(&dict, "Matrix");
        let mut inner = Interpreter::new(file, self.fonts, self.layout, own);
        inner.state = self.state.clone();
        inner.depth = self.depth + 1;
        if let Some(matrix) = matrix.as_deref().and_then(Object::array) {
            let number = |index: usize| matrix.get(index).and_then(Object::number).unwrap_or(0.0);
            inner.state.page = product(&std::array::from_fn(number), &inner.state.page);
        }
        inner.run(&content);
    }
}

/// Returns the map that applies `first`, and then `second`.
fn product(first: &Matrix, second: &Matrix) -> Matrix {
    let [a, b, c, d, e, f] = *second;
    let row = |x: f64, y: f64| (x * a + y * c, x * b + y * d);
    let top = row(first[0], first[1]);
    let middle = row(first[2], first[3]);
    let bottom = row(first[4], first[5]);
    [top.0, top.1, middle.0, middle.1, bottom.0 + e, bottom.1 + f]
}
