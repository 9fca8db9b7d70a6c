use rockbot_core::testing::Mutations;

use super::*;

#[track_caller]
fn check(html: &str, expected: &str) {
    let base = "https://example.org/docs/page.html".parse().unwrap();
    assert_eq!(
        html_to_markdown(html, Some(&base)).trim_end_matches('\n'),
        expected,
        "{html}"
    );
}

#[test]
fn headings_paragraphs_and_links() {
    check(
        "<h1>A <em>b</em></h1><p>one\n two</p><p>three",
        "# A *b*\n\none two\n\nthree",
    );
    check("<h2>Ports<a class=headerlink href='#ports'>¶</a></h2>", "## Ports");
    check(
        "<p><a href='../x?y=1#z'>a b</a>, <a href='javascript:alert(1)'>c</a>, <a href='data:text/html,x'>d</a>, <a>e</a>",
        "[a b](https://example.org/x?y=1#z), c, d, e",
    );
    check(
        "<p>see<a href=/a(b)> here </a>now",
        "see [here](https://example.org/a%28b%29) now",
    );
    check(
        "<a href=/x><h3>Title</h3><p>Text</p></a>",
        "### [Title](https://example.org/x)\n\nText",
    );
    check("<p>a<br>b<br>", "a\nb");
    check("<p>x</p><hr><p>y", "x\n\n* * *\n\ny");
    check(
        "<base href='https://evil.test/'><a href=a>b</a>",
        "[b](https://example.org/docs/a)",
    );
    check(
        "<base href='/other/'><a href=a>b</a>",
        "[b](https://example.org/other/a)",
    );
}

#[test]
fn styles() {
    check("<b>a</b> <i>b</i> <s>c</s> <code>d</code>", "**a** *b* ~~c~~ `d`");
    check("<p><b> a </b>b<i></i>", "**a** b");
    check("<code>a `b` *c*</code>", "`` a `b` *c* ``");
    check("<p>2 * 3 `x`", "2 \\* 3 \\`x\\`");
    check("<b><p>one</p><p>two</p></b>", "**one**\n\n**two**");
    check(
        "<p># no heading</p><p>- no item</p><p>1. no number</p><p>> no quote",
        "\\# no heading\n\n\\- no item\n\n1\\. no number\n\n\\> no quote",
    );
    check("<q>a</q> H<sub>2</sub>O", "\"a\" H2O");
}

#[test]
fn lists_and_quotes() {
    check("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d");
    check(
        "<ol start=3><li>a</li><li><p>b</p><p>c</p></li></ol>",
        "3. a\n4. b\n\n   c",
    );
    check("<p>x</p><ul><li>a</li></ul><p>y</p>", "x\n\n- a\n\ny");
    check("<blockquote><p>a</p><ul><li>b</ul></blockquote>", "> a\n>\n> - b");
    check("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n\n: b\n\nc\n\n: d");
    check(
        "<ul><li><input type=checkbox checked> done<li><input type=checkbox> open</ul>",
        "- [x] done\n- [ ] open",
    );
    check("<ul><li><pre>a\nb</pre></ul>", "- ```\n  a\n  b\n  ```");
}

#[test]
fn code_keeps_its_text_and_language() {
    check(
        "<pre><code class='language-rust'>fn a() {\n    b\n}</code></pre>",
        "```rust\nfn a() {\n    b\n}\n```",
    );
    check(
        "<div class='highlight-python notranslate'><div class=highlight><pre><span>import</span> os\n</pre></div></div>",
        "```python\nimport os\n```",
    );
    check("<pre class='brush: js;'>a</pre>", "```\na\n```");
    check("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````");
    check("<pre><div>a</div><div>b</div></pre>", "```\na\nb\n```");
    check("<pre> &lt;a&gt; &amp;\n  b</pre>", "```\n <a> &\n  b\n```");
    check(
        "<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>a\nb</pre></table>",
        "```\n1\n2\n```\n\n```\na\nb\n```",
    );
}

#[test]
fn tables() {
    check(
        "<table><caption>Ports</caption><tr><th>n<th>name<tr><td>80<td>a|b</table>",
        "Ports\n\n| n | name |\n| --- | --- |\n| 80 | a\\|b |",
    );
    check(
        "<table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td colspan=2>d</table>",
        "| a | b |\n| --- | --- |\n|  | c |\n| d |  |",
    );
    check(
        "<table><tr><td>x<td><p>a</p><p>b</p></table>",
        "| x | a<br>b |\n| --- | --- |",
    );
    check(
        "<table><tr><td><h2>Layout</h2><p>text</td><td>side</table>",
        "## Layout\n\ntext\n\nside",
    );
    check(
        "<table><tr><th>a<th>b<tr><td><a href=/c>c</a><td><code>d</code></table>",
        "| a | b |\n| --- | --- |\n| [c](https://example.org/c) | `d` |",
    );
}

#[test]
fn images_and_formulas() {
    check(
        "<img src=a.png alt='A  cat'>",
        "![A cat](https://example.org/docs/a.png)",
    );
    check("<img src='data:image/png;base64,x' alt=Icon>", "Icon");
    check("<img src=p.gif width=1 height=1>x", "x");
    check(
        "<a href=/b><img src=a.png alt=x></a>",
        "[![x](https://example.org/docs/a.png)](https://example.org/b)",
    );
    check(
        "<figure><img src=a.png alt=x><figcaption>A cat.</figcaption></figure>",
        "![x](https://example.org/docs/a.png)\n\nA cat.",
    );
    check("<p>so <math alttext='a^2'><mi>a</mi></math> is", "so $a^2$ is");
}

#[test]
fn tag_soup() {
    check("<p>a<div>b</p>c</div>d", "a\n\nb\n\nc\n\nd");
    check("text <b>bold <p>para</b> rest", "text **bold**\n\n**para**\n\nrest");
    check("</div></p></table>a", "a");
    check("<title>t</title>a<p>b", "a\n\nb");
    check("<head><meta charset=utf-8><div>a</div></head><body>b", "a\n\nb");
    check("<!-- x --><![CDATA[y]]><?z?>a", "a");
    check(
        "a<script>if (a < b) '</p>'</script>b<style>p{}</style><noscript>c</noscript>",
        "abc",
    );
    check("", "");
}

#[test]
fn hostile_pages_neither_crash_nor_stall() {
    let nested =
        |open: &str, close: &str, count: usize| format!("{}x{}<p>end", open.repeat(count), close.repeat(count));
    for page in [
        nested("<div>", "</div>", 20_000),
        nested("<b>", "</b>", 20_000),
        nested("<blockquote>", "", 20_000),
        nested("<ul><li>", "", 20_000),
        nested("<table><tr><td>", "", 20_000),
        nested("<a href=x>", "</a>", 20_000),
        nested("<font a=1><p>", "", 20_000),
        nested("<svg><math>", "</math></svg>", 20_000),
        format!("<p {}>x<p>end", "a=b ".repeat(20_000)),
        format!("{}<p>end", "<p><a href=x>y</a>".repeat(50_000)),
        format!("{}<p>end", "<table><tr><td colspan=1000 rowspan=1000>".repeat(2_000)),
        format!("<p>{}<p>end", "&amp;<".repeat(20_000)),
        format!(
            "{}<h1>x</h1>{}<div><p>{}<p>end",
            "<div>".repeat(200),
            "<p class=intro>read also".repeat(50_000),
            "y".repeat(90_000)
        ),
        format!("{}<p>read also{}<p>end", "<div>".repeat(200), " ".repeat(1 << 20)),
    ] {
        let whole = html_to_markdown(&page, None);
        let content = main_content(&page, None);
        assert!(whole.contains("end"), "{}: {:.200}", &page[..40], whole);
        assert!(!content.markdown.is_empty());
    }
}

#[test]
fn a_page_beyond_the_bounds_is_cut() {
    let page = format!("<title>T</title>{}", "<p>a</p>".repeat(1_000));
    // The document, the title and its text; a paragraph is two nodes.
    let content = |max_nodes| content_of(parse::parse_within(&page, max_nodes), None, max_markdown(&page));
    let expected = |paragraphs: usize, is_cut| MainContent {
        title: "T".to_owned(),
        markdown: format!("{}a\n", "a\n\n".repeat(paragraphs - 1)),
        is_cut,
    };
    assert_eq!(content(3 + 2 * 300), expected(300, true));
    assert_eq!(content(3 + 2 * 1_000 + 1), expected(1_000, false));
}

#[test]
fn no_page_becomes_much_longer() {
    let base = "https://example.org/".parse().ok();
    let links = |length: usize| {
        format!(
            "<base href='/{}/'>{}",
            "a".repeat(length),
            "<a href=b>c</a> ".repeat(20_000)
        )
    };
    for (page, is_cut) in [
        (links(80_000), false),
        (links(1_900), true),
        (format!("<table>{}", "<tr><th colspan=100>x".repeat(20_000)), true),
        (
            format!("{}<pre>{}", "<ol start=100000000><li>".repeat(24), "x\n".repeat(50_000)),
            true,
        ),
        (format!("{}{}", "<s>".repeat(100), "<p>x".repeat(20_000)), true),
    ] {
        let whole = html_to_markdown(&page, base.as_ref());
        let content = main_content(&page, base.as_ref());
        let bound = 8 * page.len() + (64 << 10) + 1;
        assert!(whole.len() <= bound, "{:.60}: {} of {bound}", page, whole.len());
        assert_eq!((content.markdown, content.is_cut), (whole, is_cut), "{page:.60}");
    }
    check(&format!("<p>a <a href='/{}'>b</a>", "c".repeat(3_000)), "a b");
}

#[test]
fn the_main_content_is_without_what_is_around_it() {
    let page = include_str!("testdata/article.html");
    let base = "https://news.example.org/2026/cats".parse().unwrap();
    let content = main_content(page, Some(&base));
    assert_eq!(content.title, "Cats sleep longer than thought");
    assert_eq!(content.markdown, include_str!("testdata/article.md"));
    assert!(!content.is_cut);
}

#[test]
fn hidden_text_is_left_out() {
    let page = "<body><p>Shown text that is long enough to count as the content of a page, and a little longer than that.\
        <p hidden>one</p><p style='display: none'>two</p><div aria-hidden=true>three</div>\
        <p style='color:red;VISIBILITY : Hidden'>four</p><span style='font-size:0'>five</span><!-- six -->\
        <p hidden=until-found>Found later.</body>";
    let shown = "Shown text that is long enough to count as the content of a page, and a little longer than that.";
    assert_eq!(main_content(page, None).markdown, format!("{shown}\n\nFound later.\n"));
}

/// Returns a sentence of about 400 bytes.
fn prose(word: &str) -> String {
    format!("This text about {word} is long enough to be the content of a page. ").repeat(6)
}

#[test]
fn the_heading_and_the_introduction_belong_to_the_article() {
    let page = format!(
        "<body><div class=top><h1>Lynxes</h1><p class=date>1 May</p><div class=article-intro>They came back to the \
         Harz forest in the year 2000.</div><p><a href=/a>One link</a> <a href=/b>and another one</a></p></div>\
         <div class=wrap><div class=text><p>{}</p><p>{}</p></div></div></body>",
        prose("lynxes"),
        prose("forests")
    );
    let expected = format!(
        "# Lynxes\n\nThey came back to the Harz forest in the year 2000.\n\n{}\n\n{}\n",
        prose("lynxes").trim(),
        prose("forests").trim()
    );
    assert_eq!(main_content(&page, None).markdown, expected);
}

#[test]
fn lines_that_lead_to_other_articles_are_left_out() {
    let page = format!(
        "<article><h1>Lynxes</h1><p>{0}</p><p><b>Read also: <a href=/w>Wolves are back in the forest</a></b></p><p>{0}</p>\
         <p>Read more about lynxes in the book of this name.</p><h3>Related articles</h3><ul><li><a href=/b>Bears of the \
         Alps and where to see them</a></ul></article>",
        prose("lynxes")
    );
    let text = prose("lynxes");
    let text = text.trim();
    let expected = format!("# Lynxes\n\n{text}\n\n{text}\n\nRead more about lynxes in the book of this name.\n");
    assert_eq!(main_content(&page, None).markdown, expected);
}

#[test]
fn words_with_links_are_no_navigation() {
    let page = format!(
        "<div><h1>open</h1><p>{0}</p><dl><dt>See also<dd><p><a href=#c>close</a>, <a href=#r>read</a></p></dl><p>{0}</p></div>",
        prose("files")
    );
    let markdown = main_content(&page, None).markdown;
    assert!(
        markdown.contains("See also\n\n: [close](#c), [read](#r)\n"),
        "{markdown}"
    );
}

/// Pages with every kind of element, for mutations. `PROPTEST_CASES` says how many.
const CORPUS: [&str; 4] = [
    include_str!("testdata/article.html"),
    "<ul><li>a<ol start=7><li>b<dl><dt>c<dd>d</dl></ol></ul><blockquote><p>e<pre class=brush:js>f</pre></blockquote>\
     <table><caption>g<tr><th colspan=2>h<tr><td rowspan=3>i<td><table><tr><td>j</table></table><h2>k <a href=#k>#</a></h2>",
    "<title>t</title><base href=/x/><body class=sidebar><div class='lead intro'>l</div><article><h1>m</h1><p hidden>n<p>\
     <a href='javascript:o'>p</a><img src=q alt=r><svg><title>s</title></svg><math alttext='t^2'></math><input type=checkbox \
     checked><script>u</script><textarea>v</textarea><plaintext>w",
    "<!doctype html><html><head><meta charset=x><style>y</style></head><body><main><section><header><h3>Read also</h3>\
     </header><p>z&amp;&#x110000;&nope;&#0;<br><b><i>aa</b></i></section></main><footer>bb</footer><!-- cc --><![CDATA[dd]]>",
];

#[test]
fn mutated_pages_are_converted() {
    Mutations::of(CORPUS).check_text(|page| {
        let base = "https://example.org/a/b".parse().unwrap();
        let whole = html_to_markdown(page, Some(&base));
        let content = main_content(page, Some(&base));
        // A link may become absolute, and a line has the prefixes of its lists.
        let bound = 64 * page.len() + 1_000;
        assert!(whole.len() < bound && content.markdown.len() < bound, "{}", whole.len());
        assert!(!content.is_cut && content.title.chars().count() <= 300);
    });
}
