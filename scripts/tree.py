"""What the check scripts share: the tree's C files, and C text without comments."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("include", "src", "tools", "tests", "plugins", "bench", "bindings")


def files(*suffixes, folders=FOLDERS):
    """Paths relative to the root, sorted."""
    found = []
    for folder in folders:
        for here, subs, names in os.walk(os.path.join(ROOT, folder)):
            subs[:] = [s for s in subs if not s.startswith((".", "build"))]
            found += [os.path.relpath(os.path.join(here, n), ROOT)
                      for n in names if n.endswith(suffixes)]
    return sorted(found)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
        return handle.read()


TOKENS = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def blank(text, keep_strings=False):
    """Comments (and strings) replaced by spaces; every line keeps its number."""
    def hide(match):
        token = match.group()
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        return token if keep_strings else token[0] + " " * (len(token) - 2) + token[0]
    return TOKENS.sub(hide, text)


def without_attributes(text):
    """`__attribute__((..))` replaced by spaces."""
    return re.sub(r"__attribute__\s*\(\(.*?\)\)",
                  lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.S)


FUNCTION = re.compile(r"^ *([A-Za-z_][\w \t*]*?)[ \t*](\w+)\([^;{}]*\)\s*\{", re.M)


def functions(text):
    """(name, whether it is static (or INLINE: kernel_arith.h), line) of each function with its body in C text without
    comments and attributes."""
    for match in FUNCTION.finditer(text):
        is_static = not {"static", "INLINE"}.isdisjoint(match.group(1).split())
        yield match.group(2), is_static, line_of(text, match.start(2))


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def table(path):
    """Lines `key: reason` of a file beside the scripts; {} when there is none."""
    try:
        lines = read(path).splitlines()
    except FileNotFoundError:
        return {}
    rows = (l.split(" ", 1) for l in lines if l.strip() and not l.startswith("#"))
    return {row[0]: row[1].strip() if len(row) > 1 else "" for row in rows}


def finish(name, count, noun, offences):
    """Print the offences, or one line that says all is well; exit accordingly."""
    for offence in offences:
        print(offence)
    if offences:
        print(f"{name}: {len(offences)} wrong")
        sys.exit(1)
    print(f"{name}: ok ({count} {noun})")
    sys.exit(0)
