"""The pages of docs/ as Sphinx reads them, and the way through them."""

import ast
import re
import shutil
from pathlib import Path

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "pictures"

NAVIGATION = {
    "Begin": [
        "getting_started",
        "notebooks/build_and_look",
        "notebooks/find_a_fault",
        "notebooks/record_compare_prove",
        "examples/index",
    ],
    "How to": [
        "from_pytorch",
        "from_jax",
        "adding_a_layer",
        "adding_an_op",
        "adding_an_optimizer",
        "nan",
        "debugging",
        "golden_traces",
        "golden_traces_pytorch",
        "agents",
        "report",
        "comparing_runs",
        "exporting",
        "deploying",
        "judge",
        "onnx",
    ],
    "In depth": [
        "nn",
        "training",
        "looking",
        "data",
        "transforms",
        "types",
        "captured_steps",
        "performance",
        "gpu",
        "ranks",
        "traces",
        "command_line",
        "systems",
    ],
    "Concepts": ["concepts", "numerics", "architecture"],
    "Reference": ["from_pytorch_names", "api/index", "trace_format", "trace_format_v1"],
    "Project": ["changelog", "decisions", "contributing"],
}
"""The pages in the order of the sidebar."""

ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}
"""What stands at the checkout's root, and where it is on the site. README's part is the landing page's there."""
MOVED = {**ROOT_PAGES, "ops.md": "api/dgrr.tape.ops.rst"}
"""Files that links name -> pages of the site."""

LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s#]+\.(?:md|py|ipynb))(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def stage(source: Path) -> None:
    """Write all pages but the reference and the notebooks."""
    for page in DOCS.glob("*.md"):
        if page.name not in MOVED:
            (source / page.name).write_text(staged(page.read_text()))
    for name, to in ROOT_PAGES.items():
        if to != "index.md":
            (source / to).write_text(staged((DOCS.parent / name).read_text()))
    (source / "index.md").write_text(landing(staged((DOCS / "index.md").read_text())))
    shutil.copytree(PICTURES, source / PICTURES.name)
    (source / "examples").mkdir()
    programs = sorted((DOCS / "examples").glob("*.py"))
    for program in programs:
        (source / "examples" / f"{program.stem}.md").write_text(example(program))
    (source / "examples" / "index.md").write_text(EXAMPLES + toctree("", [program.stem for program in programs]))


EXAMPLES = "# Examples\n\nWhole programs; [what each reaches](../index.md#examples).\n\n"


def staged(text: str) -> str:
    """A page with the links of the site."""
    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(_link, part) for part in parts[::2]]
    return "".join(parts)


def _link(link: re.Match[str]) -> str:
    """A link to where its file is on the site; one that is the name of its file gets the title of its page."""
    text, path, section = link[1], link[2], link[3] or ""
    if "://" in path:
        return link[0]
    name = re.sub(r"^(\.\./|docs/)", "", path)
    name = re.sub(r"\.py$", ".md", MOVED.get(name, name))
    shown = "" if Path(text).name == Path(path).name and path.endswith(".md") else text
    if name.startswith("api/"):
        shown, section = shown or "the reference of ops", ""
    return f"[{shown}]({name}{section})"


def landing(text: str) -> str:
    """The first page: its pictures and its uses stand beside each other, and the navigation below."""
    for mark, becomes in (
        ("pictures", "::::{container} pictures\n:::{container}"),
        ("uses", "::::{container} uses\n:::{container}"),
        ("next", ":::\n:::{container}"),
        ("end", ":::\n::::"),
    ):
        text = text.replace(f"<!-- {mark} -->", becomes)
    trees = [toctree(caption, names) for caption, names in NAVIGATION.items()]
    return f"---\nhide-toc: true\n---\n{text}\n" + "\n".join(trees)


def toctree(caption: str, names: list[str]) -> str:
    """The directive that leads to pages; with a caption it shows in the sidebar alone."""
    options = f":caption: {caption}\n:hidden:\n" if caption else ""
    return f"```{{toctree}}\n:maxdepth: 1\n{options}\n" + "\n".join(names) + "\n```\n"


def example(program: Path) -> str:
    """The page of an example: what it says of itself, and its text."""
    text = program.read_text()
    title, _, rest = (ast.get_docstring(ast.parse(text)) or program.stem).partition("\n")
    return f"# {title.rstrip('.')}\n\n{rest.strip()}\n\n```python\n{text}```\n"
