use std::collections::HashMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
#[cfg(target_os = "linux")]
use rockbot_core::testing::peak_growth;
use rockbot_core::testing::{Mutations, assert_passes_alone};

use super::*;

/// Documents of four writers, and one of them with its objects in streams.
const WRITTEN: [(&[u8], &str); 5] = [
    (
        include_bytes!("testdata/reportlab.pdf"),
        include_str!("testdata/harbour.md"),
    ),
    (
        include_bytes!("testdata/objstm.pdf"),
        include_str!("testdata/harbour.md"),
    ),
    (include_bytes!("testdata/fpdf2.pdf"), include_str!("testdata/fpdf2.md")),
    (include_bytes!("testdata/typst.pdf"), include_str!("testdata/typst.md")),
    (include_bytes!("testdata/weasy.pdf"), include_str!("testdata/weasy.md")),
];

/// Returns a document with these objects, from number 1. The first is the catalog.
fn document<O: AsRef<[u8]>>(objects: &[O]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    for (index, object) in objects.iter().enumerate() {
        bytes.extend(format!("{} 0 obj ", index + 1).bytes());
        bytes.extend(object.as_ref());
        bytes.extend(b" endobj\n");
    }
    bytes.extend(b"trailer << /Root 1 0 R >>\n");
    bytes
}

fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} >> stream\n", data.len());
    [head.as_bytes(), data, b"\nendstream"].concat()
}

fn compressed(entries: &str, data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    stream(&format!("{entries} /Filter /FlateDecode"), &encoder.finish().unwrap())
}

/// Returns a document of one page with this content. Objects from number 5 are `more`.
fn page_with(resources: &str, content: Vec<u8>, more: &[Vec<u8>]) -> Vec<u8> {
    let page = format!("<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << {resources} >> >>");
    let start = ["<< /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] >>", &page].map(|text| text.as_bytes().to_vec());
    document(&[&start[..], &[content], more].concat())
}

/// Returns the text of the only page, with Helvetica as its font `F`.
fn text_of(content: &str) -> String {
    let resources = "/Font << /F << /Subtype /Type1 /BaseFont /Helvetica >> >>";
    page_text(&page_with(resources, stream("", content.as_bytes()), &[]))
}

fn page_text(document: &[u8]) -> String {
    let text = read(document, false).unwrap().markdown;
    text.strip_prefix("## Page 1\n\n").unwrap().trim_end().to_owned()
}

#[test]
fn documents_of_four_writers_are_read() {
    for (document, expected) in WRITTEN {
        let read = read(document, false).unwrap();
        assert_eq!(format!("{}\n{}", read.title, read.markdown), expected);
        assert!(!read.is_cut);
    }
}

#[test]
fn documents_without_text_say_why() {
    let page = |content: &str| page_with("", stream("", content.as_bytes()), &[]);
    for (document, expected) in [
        (b"<html>".to_vec(), PdfError::NotAPdf),
        (include_bytes!("testdata/encrypted.pdf").to_vec(), PdfError::Encrypted),
        (b"%PDF-1.7\n%%EOF".to_vec(), PdfError::NoPages),
        (document(&["<< /Pages 9 0 R >>"]), PdfError::NoPages),
        (page("q 1 0 0 1 0 0 cm /Scan Do Q"), PdfError::NoText),
        // Glyphs without a known character are no text.
        (page("BT /Missing 12 Tf (text) Tj ET"), PdfError::NoText),
    ] {
        assert_eq!(read(&document, false).unwrap_err(), expected);
    }
}

#[test]
fn an_incomplete_document_is_read_as_far_as_it_goes() {
    let (whole, _) = WRITTEN[0];
    let cut = &whole[..whole.len() - 600];
    assert!(!cut.windows(7).any(|window| window == b"trailer"));
    let read = read(cut, true).unwrap();
    assert!(
        read.markdown.contains("## Page 1\n\nHarbour report\n"),
        "{}",
        read.markdown
    );
    assert!(
        read.markdown.contains("Bertha 95\n\n## Page 2\n\n"),
        "{}",
        read.markdown
    );
    assert_eq!(read.title, "", "it is named by the trailer");
}

/// Returns a document of as many pages, of which all contents stand at its end.
fn contents_at_the_end(pages: u32) -> Vec<u8> {
    let kids: String = (0..pages).map(|page| format!("{} 0 R ", page + 3)).collect();
    let start = ["<< /Pages 2 0 R >>".to_owned(), format!("<< /Kids [{kids}] >>")];
    let page = |page: u32| {
        let content = page + 3 + pages;
        format!("<< /Type /Page /Contents {content} 0 R /Resources << /Font << /F << >> >> >> >>")
    };
    let content = |page: u32| stream("", format!("BT /F 9 Tf (text of page {}) Tj ET", page + 1).as_bytes());
    let objects = start.into_iter().chain((0..pages).map(page)).map(String::into_bytes);
    document(&objects.chain((0..pages).map(content)).collect::<Vec<_>>())
}

#[test]
fn pages_behind_the_end_of_an_incomplete_document_are_told_as_one() {
    let whole = contents_at_the_end(20);
    let fifth = whole.windows(8).position(|window| window == b"27 0 obj").unwrap();
    let read = super::read(&whole[..fifth], true).unwrap();
    let pages: String = (1..5)
        .map(|page| format!("## Page {page}\n\ntext of page {page}\n\n"))
        .collect();
    let gap = "## Pages 5 to 20\n\n(No text was found in the part of the document that was read.)\n\n";
    assert_eq!((read.markdown, read.is_cut), (pages + gap, true));
}

#[test]
fn an_incomplete_document_with_next_to_nothing_of_its_text_is_refused() {
    let whole = contents_at_the_end(40);
    let contents = whole.windows(6).position(|window| window == b"stream").unwrap();
    let second = whole.windows(9).position(|window| window == b"of page 2").unwrap();
    for length in [20, contents, second] {
        let refused = super::read(&whole[..length], true).unwrap_err();
        assert_eq!(refused, PdfError::Cut { read: length });
        assert!(
            refused
                .to_string()
                .contains(&format!("the first {length} bytes of the PDF were read"))
        );
    }
}

#[test]
fn what_is_written_into_a_form_is_text() {
    let field = |appearance: &str, y: u32| {
        format!("<< /Subtype /Widget /Rect [9 {y} 99 {}] {appearance} >>", y + 9).into_bytes()
    };
    let form = |content: &str| {
        let entries = "/Subtype /Form /Resources << /Font << /F << >> >> >>";
        stream(entries, format!("BT /F 9 Tf ({content}) Tj ET").as_bytes())
    };
    let more = [
        b"[6 0 R 7 0 R 11 0 R << /Subtype /Link >> 9]".to_vec(),
        field("/AP << /N 8 0 R >>", 60),
        field("/AS /Yes /AP << /N << /Yes 9 0 R /Off 10 0 R >> >>", 40),
        form("Ann Miller"),
        form("x"),
        form("off"),
        field("/F 2 /AP << /N 10 0 R >>", 20),
    ];
    let content = stream("", b"BT /F 9 Tf 9 90 Td (Name) Tj ET");
    let document = page_with("/Font << /F << >> >> >> /Annots 5 0 R /Rest <<", content, &more);
    assert_eq!(page_text(&document), "Name\n\nAnn Miller\n\nx");
}

#[test]
fn the_newest_object_of_a_number_counts() {
    let old = page_with("/Font << /F << >> >>", stream("", b"BT /F 9 Tf (old) Tj ET"), &[]);
    let new = [
        b"4 0 obj ".to_vec(),
        stream("", b"BT /F 9 Tf (new) Tj ET"),
        b" endobj trailer << >>".to_vec(),
    ]
    .concat();
    assert_eq!(page_text(&[old, new].concat()), "new");
}

#[test]
fn pieces_become_words_lines_and_paragraphs_by_their_places() {
    for (content, expected) in [
        (
            "BT /F 10 Tf (one) Tj 0 -12 Td (two) Tj 0 -30 Td (three) Tj ET",
            "one\ntwo\n\nthree",
        ),
        ("BT /F 10 Tf [(W) 80 (ord) -300 (next)] TJ ET", "Word next"),
        ("BT /F 10 Tf 12 TL (a) Tj T* (b) Tj (c) ' 0 0 (d) \" ET", "a\nb\nc\nd"),
        (
            "BT /F 1 Tf 10 0 0 10 0 700 Tm (a) Tj 10 0 0 10 90 704 Tm (b) Tj ET",
            "a b",
        ),
        ("BT /F 10 Tf [(V) -90 (A)] TJ ET", "VA"),
        ("BT /F 10 Tf [(sin) -167 (x)] TJ ET", "sin x"),
        // A space that is a distance of characters.
        (
            "BT /F 10 Tf (vie) Tj 2.5 Tc (ws) Tj 0 Tc [250 (hown)] TJ ET",
            "view shown",
        ),
        // Accents over their letters, and beside them.
        (
            "BT /F 10 Tf [(Schr\\310) 540 (oder f\\317) 540 (urs)] TJ ET",
            "Schröder fˇurs",
        ),
        ("BT /F 10 Tf [(gar) 0 (c) 540 (\\313) 0 (on)] TJ ET", "garçon"),
        ("BT /F 10 Tf (\\302e \\302) Tj ET", "´e ´"),
        ("BT /F 10 Tf [(pas) 200 (\\302) 400 (\\365) 0 (s)] TJ ET", "pasís"),
        // Along an upright line.
        (
            "BT /F 10 Tf 0 1 -1 0 0 0 Tm (up) Tj 0 1 -1 0 0 90 Tm (on) Tj ET",
            "up on",
        ),
        (
            "q 2 0 0 2 0 0 cm BT /F 5 Tf (a) Tj ET Q BT /F 10 Tf 0 -12 Td (b) Tj ET",
            "a\nb",
        ),
        (
            r"BT /F 10 Tf (a\(b\)\\ \101\12(c) <) Tj <4142 4> Tj ET",
            r"a(b)\ A (c) <AB@",
        ),
        ("BT /F 10 Tf (a) Tj BI /W 1 ID \u{1}EI) ( EI (b) Tj ET", "ab"),
    ] {
        assert_eq!(text_of(content), expected, "{content}");
    }
}

#[test]
fn characters_come_from_names_maps_and_font_programs() {
    let program =
        b"%!PS\n/Encoding 256 array\ndup 11 /ff put\ndup 92 /quotedblleft put\nreadonly def currentfile eexec \x80\x01";
    let map = b"1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfchar <0001> <00660069> endbfchar
        2 beginbfrange <0010> <0012> <0430> <0020> <0021> [<D83DDE80> <0078>] endbfrange";
    let more = [
        stream("", program),
        stream("", map),
        b"<< /Subtype /Type1 /FontDescriptor << /FontFile 5 0 R >> >>".to_vec(),
        b"<< /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [<< /DW 500 /W [1 [400] 16 18 300] >>] >>".to_vec(),
        b"<< /Subtype /Type1 /Encoding << /BaseEncoding /WinAnsiEncoding /Differences [65 /Gamma /uni20AC /T_h /g12] >> >>".to_vec(),
        b"<< /Subtype /Type0 /Encoding /UniJIS-UCS2-H >>".to_vec(),
        b"<< /Subtype /Type1 >>".to_vec(),
        b"<< /Subtype /Type1 /Encoding /MacRomanEncoding >>".to_vec(),
        b"<< /Subtype /Type1 /ToUnicode 14 0 R >>".to_vec(),
        stream("", b"1 beginbfchar <41> <0391> endbfchar"),
    ];
    let fonts = "/Font << /P 7 0 R /M 8 0 R /D 9 0 R /U 10 0 R /S 11 0 R /R 12 0 R /L 13 0 R >>";
    for (content, expected) in [
        ("/P 9 Tf (\\\\a\\013)", "“aff"),
        ("/M 9 Tf <0001001000120020002100990010>", "fiав🚀x\u{fffd}а"),
        ("/D 9 Tf (ABCDE\\200)", "Γ€Th\u{fffd}E€"),
        ("/U 9 Tf <67714EAC>", "東京"),
        ("/S 9 Tf (don't\\256\\320\\341\\373)", "don’tfi—Æß"),
        ("/R 9 Tf (\\212)", "ä"),
        // A map that lacks codes, and no encoding.
        ("/L 9 Tf (ABC)", "ΑBC"),
    ] {
        let document = page_with(fonts, stream("", format!("BT {content} Tj ET").as_bytes()), &more);
        assert_eq!(page_text(&document), expected, "{content}");
    }
}

#[test]
fn characters_come_from_collections_and_older_encodings() {
    for (encoding, ordering, codes, expected) in [
        ("Identity-H", "Japan1", "034B 0001 0465", "あ 亜"),
        ("Identity-V", "GB1", "11CF 0ED3", "中文"),
        ("Identity-H", "CNS1", "0253 0295", "一中"),
        ("Identity-H", "Korea1", "043E 0CE0", "가한"),
        ("90ms-RKSJ-H", "Japan1", "41 B1 93FA 967B", "Aｱ日本"),
        ("EUC-H", "Japan1", "41 C6FC CBDC", "A日本"),
        ("H", "Japan1", "467C 4B5C", "日本"),
        ("GBK-EUC-H", "GB1", "41 D6D0 CEC4", "A中文"),
        ("ETen-B5-V", "CNS1", "A4A4 A4E5", "中文"),
        ("KSCms-UHC-H", "Korea1", "C7D1 B1DB", "한글"),
        ("Identity-H", "Identity", "0041 0042", ""),
    ] {
        let system = format!("/CIDSystemInfo << /Registry (Adobe) /Ordering ({ordering}) >>");
        let font = format!("<< /Subtype /Type0 /Encoding /{encoding} /DescendantFonts [<< {system} >>] >>");
        let content = stream("", format!("BT /F 9 Tf <{codes}> Tj ET").as_bytes());
        let read = read(&page_with(&format!("/Font << /F {font} >>"), content, &[]), false);
        let text = read.map_or(String::new(), |read| {
            read.markdown.replace("## Page 1", "").trim().to_owned()
        });
        assert_eq!(text, expected, "{encoding} {ordering}");
    }
}

#[test]
fn glyphs_that_are_named_by_their_codes_are_known() {
    let show = |names: &str, codes: &str| {
        let font = format!("<< /Subtype /Type3 /Encoding << /Differences [{names}] >> >>");
        let content = stream("", format!("BT /F 9 Tf ({codes}) Tj ET").as_bytes());
        read(&page_with(&format!("/Font << /F {font} >>"), content, &[]), false).map(|read| read.markdown)
    };
    let page = |text: &str| Ok(format!("## Page 1\n\n{text}\n\n"));
    for names in [
        "72 /a72 105 /a105",
        "72 /x48 105 /x69",
        "72 /g48 105 /g69",
        "72 /C0048 105 /C0069",
        "72 /72 105 /105",
    ] {
        assert_eq!(show(names, "Hi"), page("Hi"), "{names}");
    }
    // Ligatures and letters of the fonts of TeX.
    assert_eq!(
        show("11 /a11 /a12 28 /x1C 228 /aE4", "\\013 \\014 \\034 \\344"),
        page("ff fi fi ä")
    );
    // Numbers of glyphs, one of which happens to be its code.
    for names in ["72 /g48 105 /g49 /g50", "72 /g258 105 /g437", "1 /g72 /g105"] {
        assert_eq!(show(names, "Hi\\001"), Err(PdfError::UnknownCharacters), "{names}");
    }
}

#[test]
fn characters_that_are_not_known_are_counted_where_they_are_many() {
    let show = |content: &str| {
        let fonts = "/Font << /K << >> /U << /Subtype /Type3 /Encoding << /Differences [65 /x1y /x2y] >> >> >>";
        let content = format!("BT {content} ET");
        read(&page_with(fonts, stream("", content.as_bytes()), &[]), false).map(|read| read.markdown)
    };
    let page = |text: &str| Ok(format!("## Page 1\n\n{text}\n\n"));
    let few = "/K 9 Tf (a bullet ) Tj /U 9 Tf (A) Tj /K 9 Tf ( and words) Tj";
    assert_eq!(show(few), page("a bullet \u{fffd} and words"));
    let many = format!(
        "/K 9 Tf (Words with ) Tj /U 9 Tf ({}) Tj /K 9 Tf (, around) Tj",
        "AB ".repeat(10_000)
    );
    let told = "(20000 of the 20016 characters of this page are left out: its fonts do not say which they are.)";
    assert_eq!(show(&many), page(&format!("Words with , around\n\n{told}")));
    assert_eq!(show("/U 9 Tf (AB AB) Tj"), Err(PdfError::UnknownCharacters));
}

#[test]
fn streams_are_decoded_from_each_encoding_of_text() {
    let content = b"BT /F 9 Tf (plain) Tj ET";
    let hexadecimal: String = content.iter().map(|byte| format!("{byte:02X} ")).collect();
    for content in [
        compressed("", content),
        stream("/Filter [/ASCIIHexDecode]", format!("{hexadecimal}>").as_bytes()),
        // Without a length, and with a wrong one.
        [b"<< >> stream\r\n".as_slice(), content, b"\r\nendstream"].concat(),
        [b"<< /Length 3 >> stream\n".as_slice(), content, b"\nendstream"].concat(),
    ] {
        assert_eq!(page_text(&page_with("/Font << /F << >> >>", content, &[])), "plain");
    }
    for unknown in [
        "/Filter /JBIG2Decode",
        "/Filter /FlateDecode /DecodeParms << /Predictor 12 >>",
    ] {
        let document = page_with("/Font << /F << >> >>", stream(unknown, content), &[]);
        assert_eq!(read(&document, false).unwrap_err(), PdfError::NoText, "{unknown}");
    }
}

/// Reads a document with a budget of a megabyte. It ends in bounded time and memory, whatever it
/// says.
fn little(document: &[u8]) -> Result<PdfText, PdfError> {
    read_within(document, false, &Budget::new(1 << 20))
}

#[test]
fn bombs_are_read_up_to_the_budget() {
    let bomb = compressed("", &b"BT /F 9 Tf ".repeat(1 << 18));
    assert!(bomb.len() < 20_000, "{} bytes", bomb.len());
    let spaces = compressed("", &vec![b' '; 4 << 20]);
    let many = format!("[{}]", "4 0 R ".repeat(10_000)).into_bytes();
    let small = stream("", b"BT /F 9 Tf (words) Tj ET ");
    let pages = |contents: &str| {
        let page = format!("<< /Type /Page /Contents {contents} /Resources << /Font << /F << >> >> >> >>");
        let kids: String = (5..3_005).map(|id| format!("{id} 0 R ")).collect();
        let start = [
            "<< /Pages 2 0 R >>".to_owned(),
            format!("<< /Kids [{kids}] >>"),
            "9".to_owned(),
        ];
        let start = start.map(String::into_bytes);
        document(
            &[
                &start[..],
                std::slice::from_ref(&small),
                &vec![page.into_bytes(); 3_000],
            ]
            .concat(),
        )
    };
    assert_eq!(little(&page_with("", bomb.clone(), &[])), Err(PdfError::TooLarge));
    assert_eq!(little(&page_with("", spaces, &[])), Err(PdfError::TooLarge));
    // A layer of each kind on top of the other.
    let twice = compressed("/Filter [/FlateDecode /FlateDecode] /X", &bomb);
    assert!(little(&page_with("", twice, &[])).is_err());
    let listed = page_with("/Font << /F << >> >>", small.clone(), &[many]);
    let listed = String::from_utf8(listed).unwrap().replace("/Contents 4", "/Contents 5");
    let read = little(listed.as_bytes()).unwrap();
    assert!(read.is_cut && read.markdown.contains("words"));
    // More pages than are read, and pages that take more work than there is.
    let read = super::read(&pages("4 0 R"), false).unwrap();
    assert!(read.is_cut && read.markdown.contains("## Page 2000\n") && !read.markdown.contains("## Page 2001\n"));
    assert!(little(&pages("[4 0 R 4 0 R]")).unwrap().is_cut);
}

#[test]
fn a_document_that_takes_too_long_is_read_up_to_there() {
    let content = compressed("", &b"BT /F 9 Tf (words) Tj ET ".repeat(10_000));
    let document = page_with("/Font << /F << >> >>", content, &[]);
    let read = |seconds| {
        let budget = Budget::within(8 << 20, std::time::Duration::from_secs(seconds));
        read_within(&document, false, &budget).map(|read| read.is_cut)
    };
    assert_eq!(read(0), Err(PdfError::TooLarge));
    assert_eq!(read(3_600), Ok(false));
}

/// Returns small documents that are made to take memory, each with a name.
#[cfg(target_os = "linux")]
fn memory_bombs() -> [(&'static str, Vec<u8>); 9] {
    let typeface = b"<< /Subtype /Type0 /Encoding /UniGB-UCS2-H /ToUnicode 6 0 R /DescendantFonts 6 0 R >>".to_vec();
    let with = |text: &str, object: Vec<u8>| {
        let fonts: String = (0..128)
            .map(|number| format!("/F{number} {} 0 R ", number + 7))
            .collect();
        let content = compressed("", format!("BT {text} ET").as_bytes());
        let more = [&[b"0".to_vec(), object][..], &vec![typeface.clone(); 64]].concat();
        page_with(&format!("/Font << {fonts} >>"), content, &more)
    };
    let (shown, values) = ("/F0 9 Tf (a) Tj", "<41>".repeat(4 << 20));
    let packed = |item: &str, count: usize| {
        let objects = format!("9 0 [{}]", item.repeat(count));
        with(shown, compressed("/Type /ObjStm /N 1 /First 4", objects.as_bytes()))
    };
    let map = format!("<0000> <ffff> [{}] endbfrange", "<0041>".repeat(1 << 16));
    let widths = format!("[<< /W [0 [{}]] >>]", "1 ".repeat(250_000)).into_bytes();
    let names: String = (0..1_000_000).map(|number| format!("/{number:x} 0 Tf ")).collect();
    let fonts: String = (0..128).map(|number| format!("/F{number} 9 Tf (a) Tj ")).collect();
    [
        ("zeros", with(shown, compressed("", &vec![0; 256 << 20]))),
        ("values between operators", with(&values, b"0".to_vec())),
        (
            "values of a character map",
            with(shown, compressed("", values.as_bytes())),
        ),
        ("maps of fonts", with(&fonts, compressed("", map.as_bytes()))),
        ("widths of fonts", with(&fonts, widths)),
        ("names of fonts", with(&names, b"0".to_vec())),
        ("numbers in an object", packed("0 ", 8 << 20)),
        ("dictionaries in an object", packed("<</A[]>>", 80_000)),
        (
            "text",
            with(&format!("/F0 9 Tf {}", "(abcdefgh)'".repeat(1 << 20)), b"0".to_vec()),
        ),
    ]
}

#[cfg(target_os = "linux")]
#[test]
fn hostile_documents_take_bounded_memory() {
    assert_passes_alone("pdf::tests::documents_are_read_in_128_mebibytes", &[]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "hostile_documents_take_bounded_memory runs it, in a process of its own"]
async fn documents_are_read_in_128_mebibytes() {
    for (name, bomb) in memory_bombs() {
        let growth = peak_growth(async {
            let read = read(&bomb, false).map(|text| (text.markdown.len(), text.is_cut));
            println!("{name}: {} bytes, {read:?}", bomb.len());
            assert!(name != "text" || matches!(read, Ok((_, true))), "{read:?}");
        })
        .await;
        println!("{name}: peak memory grew by {} KiB", growth >> 10);
        assert!(growth < 128 << 20, "{name}: {growth}");
    }
}

#[test]
fn many_objects_in_one_large_object_are_not_read_twice_for_free() {
    // Each of 1 000 numbers is the same array of 100 000.
    let index: String = (10..1_010).map(|id| format!("{id} 0 ")).collect();
    let objects = format!("{index}[{}]", "0 ".repeat(100_000));
    let entries = format!("/Type /ObjStm /N 1000 /First {}", index.len());
    let kids: String = (10..1_010).map(|id| format!("{id} 0 R ")).collect();
    let document = document(&[
        b"<< /Pages 2 0 R >>".to_vec(),
        format!("<< /Kids [{kids}] >>").into_bytes(),
        compressed(&entries, objects.as_bytes()),
    ]);
    assert_eq!(little(&document), Err(PdfError::TooLarge));
}

#[test]
fn circles_end() {
    let circle = [
        "<< /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [2 0 R 3 0 R] >>",
        "<< /Type /Pages /Kids [2 0 R 3 0 R 3 0 R] >>",
    ];
    assert_eq!(little(&document(&circle)), Err(PdfError::NoPages));
    let references = ["<< /Pages 2 0 R >>", "3 0 R", "2 0 R"];
    assert_eq!(little(&document(&references)), Err(PdfError::NoPages));
    let itself = "/Type /ObjStm /N 1 /First 4 /Filter 3 0 R";
    let objects = document(&[
        b"<< /Pages 3 0 R >>".to_vec(),
        b"2 0 R".to_vec(),
        stream(itself, b"3 0 3 0 R"),
    ]);
    assert_eq!(little(&objects), Err(PdfError::NoText));
    let form = "/Subtype /Form /Resources << /Font << /F << >> >> /XObject << /X 5 0 R >> >>";
    let form = stream(form, b"BT /F 9 Tf 0 -20 TD (in) Tj ET /X Do /X Do");
    let read = little(&page_with("/XObject << /X 5 0 R >>", stream("", b"/X Do"), &[form])).unwrap();
    // The form is in itself eight times, twice each.
    assert!(read.markdown.matches("in").count() < 256, "{}", read.markdown.len());
}

#[test]
fn nesting_ends() {
    for piece in [
        "[",
        "<<",
        "<</A",
        "<</Kids[",
        "(",
        "(\\",
        "q ",
        "[<<",
        "1 0 obj [",
        "1 0 obj <</A 1 0 obj stream\n",
    ] {
        let nested = piece.repeat(100_000);
        let plain = document(&["<< /Pages 2 0 R >>", &nested]);
        let content = page_with("/Font << /F << >> >>", stream("", nested.as_bytes()), &[]);
        for document in [plain, content] {
            assert!(little(&document).is_err(), "{piece}");
        }
    }
}

#[test]
fn mutated_documents_are_read_or_refused() {
    let plain = page_with(
        "/Font << /F 5 0 R /G 6 0 R >> /XObject << /X 8 0 R >>",
        stream(
            "",
            b"q 1 0 0 1 9 9 cm BT /F 9 Tf 1 0 0 1 2 3 Tm [(a) -90 (b)] TJ T* (c) ' /G 8 Tf <0001> Tj ET Q /X Do",
        ),
        &[
            b"<< /Subtype /Type1 /FirstChar 32 /Widths [1 2 3] /Encoding << /Differences [65 /A /B_c] >> >>".to_vec(),
            b"<< /Subtype /Type0 /ToUnicode 7 0 R /DescendantFonts [<< /DW 1 /W [1 [2 3] 4 5 6] >>] >>".to_vec(),
            stream(
                "",
                b"1 beginbfchar <0001> <0041> endbfchar 1 beginbfrange <01> <09> [<0041>] endbfrange",
            ),
            stream("/Subtype /Form /Matrix [1 0 0 1 0 0]", b"BT /F 2 Tf (form) Tj ET"),
            stream("/Type /ObjStm /N 2 /First 10", b"20 0 21 3 9 << /Kids [3 0 R] >>"),
        ],
    );
    let corpus = WRITTEN
        .iter()
        .map(|(document, _)| document.to_vec())
        .chain(vec![plain; 3]);
    Mutations::of(corpus).check(|document| {
        if let Ok(text) = little(document) {
            assert!(text.markdown.len() < MAX_TEXT + 100_000 && text.title.len() < 2_000);
        }
    });
}

/// Returns how often a text has each of its words. A Chinese or Japanese character is a word.
fn words_of(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text
        .to_lowercase()
        .split(|character: char| !character.is_alphanumeric())
    {
        let letters: String = word.chars().filter(|character| *character < '\u{3000}').collect();
        let signs = word
            .chars()
            .filter(|character| *character >= '\u{3000}')
            .map(String::from);
        for word in signs.chain([letters]).filter(|word| !word.is_empty()) {
            *words.entry(word).or_default() += 1;
        }
    }
    words
}

/// Compares the documents that `ROCKBOT_TEST_PDF` names, separated by colons, with what
/// `pdftotext` reads. They are public ones, which are kept out of the repository.
#[test]
fn public_documents_have_the_words_that_pdftotext_reads() {
    let Some(paths) = std::env::var_os("ROCKBOT_TEST_PDF") else {
        println!("SKIPPED: ROCKBOT_TEST_PDF names no documents");
        return;
    };
    let mut recalls = Vec::new();
    for path in std::env::split_paths(&paths) {
        let mut command = std::process::Command::new("pdftotext");
        let expected = command.args(["-enc", "UTF-8"]).arg(&path).arg("-").output().unwrap();
        let expected = words_of(&String::from_utf8_lossy(&expected.stdout));
        let read = super::read(&std::fs::read(&path).unwrap(), false);
        let own = words_of(&read.map_or(String::new(), |read| read.markdown));
        let found = expected
            .iter()
            .map(|(word, count)| *count.min(own.get(word).unwrap_or(&0)));
        let recall = found.sum::<usize>() as f64 / expected.values().sum::<usize>().max(1) as f64;
        println!("{recall:.3} {}", path.display());
        recalls.push(recall);
    }
    recalls.sort_by(f64::total_cmp);
    let median = recalls[recalls.len() / 2];
    let mean = recalls.iter().sum::<f64>() / recalls.len() as f64;
    println!("{} documents: median {median:.4}, mean {mean:.4}", recalls.len());
    assert!(median >= 0.98 && mean >= 0.95);
}
