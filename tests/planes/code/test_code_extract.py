"""What each language's files define and use."""

import random

import pytest

from loom.planes.code.extract import BASE, CALL, IMPORT, MEMBER_CALL, Extracted, extracted
from loom.planes.code.languages import LANGUAGES, grammar_of

SOURCES = {
    "python": (
        "kettle.py",
        '''import os.path as paths
from tea.leaves import Leaf as L

LITRES = 2

@boiling
class Kettle(Vessel, metal.Thing):
    """Boils water."""

    lid = None

    @property
    def hot(self) -> bool:
        """Whether it is hot."""
        return self.heat(LITRES)

async def serve(cup):
    def inner():
        return pour(cup)
    return inner()
''',
        {
            ("constant", "LITRES"),
            ("class", "Kettle"),
            ("property", "Kettle.lid"),
            ("method", "Kettle.hot"),
            ("function", "serve"),
            ("function", "serve.inner"),
        },
        {("heat", MEMBER_CALL, "self"), ("pour", CALL, ""), ("inner", CALL, ""), ("Vessel", BASE, ""), ("Leaf", IMPORT, "")},
        ("Kettle", "Boils water."),
    ),
    "javascript": (
        "kettle.js",
        """import { Leaf } from "./tea";

/**
 * Boils water.
 */
export class Kettle extends Vessel {
  lid = null;
  static heat(degrees) { return this.boil(degrees); }
}

function* drops() {}
const pour = (cup) => fill(cup);
exports.serve = function () { return new Kettle(); };
const table = { lay() {}, clear: () => wipe() };
""",
        {
            ("class", "Kettle"),
            ("property", "Kettle.lid"),
            ("method", "Kettle.heat"),
            ("function", "drops"),
            ("function", "pour"),
            ("function", "serve"),
            ("variable", "table"),
            ("method", "table.lay"),
            ("function", "table.clear"),
        },
        {("boil", MEMBER_CALL, "this"), ("fill", CALL, ""), ("Kettle", CALL, ""), ("Vessel", BASE, ""), ("Leaf", IMPORT, "")},
        ("Kettle", "Boils water."),
    ),
    "typescript": (
        "kettle.ts",
        """import { Leaf } from "./tea";

enum Heat { Low }

/** Boils water. */
export interface Boils extends Holds {
  boil(degrees: number): void;
}

type Cup = string | number;

export namespace Kitchen {
  export abstract class Kettle<T> extends Vessel implements Boils {
    private lid: T;
    abstract drain(): void;
    boil(degrees: number): void { this.lid?.open(); stir<T>(degrees); }
  }
}

export const pour = async (cup: Cup): Promise<void> => { new Kitchen.Kettle(); };
""",
        {
            ("enum", "Heat"),
            ("interface", "Boils"),
            ("method", "Boils.boil"),
            ("type", "Cup"),
            ("module", "Kitchen"),
            ("class", "Kitchen.Kettle"),
            ("property", "Kitchen.Kettle.lid"),
            ("method", "Kitchen.Kettle.drain"),
            ("method", "Kitchen.Kettle.boil"),
            ("function", "pour"),
        },
        {("open", MEMBER_CALL, "lid"), ("stir", CALL, ""), ("Kettle", MEMBER_CALL, "Kitchen"), ("Vessel", BASE, "")},
        ("Boils", "Boils water."),
    ),
    "go": (
        "kettle.go",
        """package kettle

import (
	"example.com/tea/leaf"
)

// Kettle boils water.
type Kettle struct{ litres int }

type Boiler interface{ Boil(degrees int) error }

const Max = 3

func (k *Kettle) Boil(degrees int) error {
	leaf.Steep(degrees)
	k.open()
	return check(degrees)
}

func New() *Kettle { return &Kettle{} }
""",
        {
            ("struct", "Kettle"),
            ("interface", "Boiler"),
            ("method", "Boiler.Boil"),
            ("constant", "Max"),
            ("method", "Kettle.Boil"),
            ("function", "New"),
        },
        {("Steep", MEMBER_CALL, "leaf"), ("open", MEMBER_CALL, "k"), ("check", CALL, ""), ("leaf", IMPORT, "")},
        ("Kettle", "Kettle boils water."),
    ),
    "rust": (
        "kettle.rs",
        """use tea::Leaf;

const MAX: u8 = 3;

/// Boils water.
#[derive(Debug)]
pub struct Kettle { litres: u8 }

pub trait Boils: Holds {
    fn boil(&self);
}

impl Boils for Kettle {
    fn boil(&self) {
        self.open();
        Leaf::steep(1);
        fill::<u8>();
        shout!("hot");
    }
}

macro_rules! shout { ($x:expr) => {} }
""",
        {
            ("constant", "MAX"),
            ("struct", "Kettle"),
            ("trait", "Boils"),
            ("method", "Boils.boil"),
            ("method", "Kettle.boil"),
            ("macro", "shout"),
        },
        {
            ("open", MEMBER_CALL, "self"),
            ("steep", MEMBER_CALL, "Leaf"),
            ("fill", CALL, ""),
            ("shout", CALL, ""),
            ("Holds", BASE, ""),
            ("Leaf", IMPORT, ""),
        },
        ("Kettle", "Boils water."),
    ),
    "java": (
        "Kettle.java",
        """package kitchen;

import tea.Leaf;

/** Boils water. */
public class Kettle extends Vessel implements Boils {
    static final int MAX = 3;

    public Kettle(int litres) { fill(litres); }

    @Override
    public void boil(int degrees) {
        this.open();
        Leaf.steep();
        new Cup();
    }

    enum Heat { LOW }
}
""",
        {
            ("class", "Kettle"),
            ("constant", "Kettle.MAX"),
            ("method", "Kettle.Kettle"),
            ("method", "Kettle.boil"),
            ("enum", "Kettle.Heat"),
        },
        {
            ("fill", CALL, ""),
            ("open", MEMBER_CALL, "this"),
            ("steep", MEMBER_CALL, "Leaf"),
            ("Cup", CALL, ""),
            ("Vessel", BASE, ""),
            ("Boils", BASE, ""),
            ("Leaf", IMPORT, ""),
        },
        ("Kettle", "Boils water."),
    ),
    "c": (
        "kettle.c",
        """#include "tea/leaf.h"
#define TWICE(x) ((x) * 2)

struct kettle { int litres; };
typedef struct kettle kettle_t;

int boil(int degrees);

/* Boils water. */
static int *fill(struct kettle *k, int litres) {
    k->open(litres);
    return steep(TWICE(litres));
}
""",
        {
            ("macro", "TWICE"),
            ("struct", "kettle"),
            ("type", "kettle_t"),
            ("prototype", "boil"),
            ("function", "fill"),
        },
        {("open", MEMBER_CALL, "k"), ("steep", CALL, ""), ("TWICE", CALL, "")},
        ("fill", "Boils water."),
    ),
    "cpp": (
        "kettle.cpp",
        """#include <vessel>

namespace kitchen {
// Boils water.
class Kettle : public Vessel {
 public:
  Kettle();
  int boil(int degrees) const;
  template <class T> T pour() { return spill<T>(); }
};
}

int kitchen::Kettle::boil(int degrees) const {
  this->open();
  tea::steep();
  return *new Cup(degrees);
}
""",
        {
            ("class", "kitchen.Kettle"),
            ("prototype", "kitchen.Kettle.Kettle"),
            ("prototype", "kitchen.Kettle.boil"),
            ("method", "kitchen.Kettle.pour"),
            ("method", "kitchen.Kettle.boil"),
        },
        {
            ("spill", CALL, ""),
            ("open", MEMBER_CALL, "this"),
            ("steep", MEMBER_CALL, "tea"),
            ("Cup", CALL, ""),
            ("Vessel", BASE, ""),
            ("vessel", IMPORT, ""),
        },
        ("kitchen.Kettle", "Boils water."),
    ),
    "ruby": (
        "kettle.rb",
        """require "tea/leaf"

module Kitchen
  # Boils water.
  class Kettle < Vessel
    include Boils
    MAX = 3

    def boil(degrees)
      fill(degrees)
      leaf.steep
    end

    def self.make
      Kettle.new
    end
  end
end
""",
        {
            ("module", "Kitchen"),
            ("class", "Kitchen.Kettle"),
            ("constant", "Kitchen.Kettle.MAX"),
            ("method", "Kitchen.Kettle.boil"),
            ("method", "Kitchen.Kettle.make"),
        },
        {
            ("fill", CALL, ""),
            ("steep", MEMBER_CALL, "leaf"),
            ("new", MEMBER_CALL, "Kettle"),
            ("Vessel", BASE, ""),
            ("Boils", BASE, ""),
        },
        ("Kitchen.Kettle", "Boils water."),
    ),
    "php": (
        "kettle.php",
        """<?php
namespace Kitchen;

use Tea\\Leaf;

/** Boils water. */
class Kettle extends Vessel implements Boils
{
    const MAX = 3;
    private int $litres = 1;

    public function boil(int $degrees): void
    {
        $this->open();
        Leaf::steep();
        fill($degrees);
        new Cup();
    }
}

function pour() {}
""",
        {
            ("class", "Kettle"),
            ("constant", "Kettle.MAX"),
            ("property", "Kettle.litres"),
            ("method", "Kettle.boil"),
            ("function", "pour"),
        },
        {
            ("open", MEMBER_CALL, "this"),
            ("steep", MEMBER_CALL, "Leaf"),
            ("fill", CALL, ""),
            ("Cup", CALL, ""),
            ("Vessel", BASE, ""),
            ("Boils", BASE, ""),
            ("Leaf", IMPORT, ""),
        },
        ("Kettle", "Boils water."),
    ),
    "csharp": (
        "Kettle.cs",
        """using Tea.Leaves;

namespace Kitchen.Things
{
    /// <summary>Boils water.</summary>
    public class Kettle : Vessel, IBoils
    {
        const int MAX = 3;
        public int Litres { get; set; }

        public Kettle(int litres) { Fill(litres); }

        public async Task<int> Boil(int degrees)
        {
            this.Open();
            leaf.Steep<int>();
            return new Cup();
        }
    }

    public struct Spoon {}
}
""",
        {
            ("class", "Kitchen.Things.Kettle"),
            ("constant", "Kitchen.Things.Kettle.MAX"),
            ("property", "Kitchen.Things.Kettle.Litres"),
            ("method", "Kitchen.Things.Kettle.Kettle"),
            ("method", "Kitchen.Things.Kettle.Boil"),
            ("struct", "Kitchen.Things.Spoon"),
        },
        {
            ("Fill", CALL, ""),
            ("Open", MEMBER_CALL, "this"),
            ("Steep", MEMBER_CALL, "leaf"),
            ("Cup", CALL, ""),
            ("Vessel", BASE, ""),
            ("IBoils", BASE, ""),
            ("Leaves", IMPORT, ""),
        },
        ("Kitchen.Things.Kettle", "Boils water."),
    ),
}


def read(path: str, text: str) -> Extracted:
    grammar = grammar_of(path, text)
    assert grammar is not None
    return extracted(grammar, text)


def test_every_language_has_a_sample() -> None:
    assert set(SOURCES) == set(LANGUAGES)


@pytest.mark.parametrize("language", sorted(SOURCES))
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_definitions_and_uses(language: str, ending: str) -> None:
    path, text, symbols, uses, (documented, words) = SOURCES[language]
    found = read(path, text.replace("\n", ending))
    assert not found.broken
    assert {(one.kind, one.qualified) for one in found.symbols} == symbols
    assert uses <= {(one.name, one.role, one.receiver) for one in found.uses}
    assert next(one.docstring for one in found.symbols if one.qualified == documented) == words


def test_lines_and_signatures() -> None:
    found = read(*SOURCES["python"][:2])
    kettle, hot = (next(one for one in found.symbols if one.name == name) for name in ("Kettle", "hot"))
    assert (kettle.start_line, kettle.end_line, kettle.signature) == (6, 15, "class Kettle(Vessel, metal.Thing)")
    assert (hot.start_line, hot.end_line, hot.signature) == (12, 15, "def hot(self) -> bool")
    assert found.symbols[hot.parent] is kettle


@pytest.mark.parametrize("language", sorted(SOURCES))
def test_broken_code_still_gives_what_is_whole(language: str) -> None:
    path, text, symbols, _, _ = SOURCES[language]
    found = read(path, text + "\n)]} ((( \n")
    assert found.broken
    assert {(one.kind, one.qualified) for one in found.symbols} & symbols


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("empty.py", ""),
        ("blank.js", " \n\n"),
        ("words.go", "this is no code at all, ünïcode 漢字 🙂"),
        ("only_comment.rs", "// nothing"),
        ("nul_free.c", "\x01\x02\x03 int main() {"),
    ],
)
def test_odd_texts_are_read_without_an_error(path: str, text: str) -> None:
    assert len(read(path, text).symbols) <= 1


def test_depth_costs_no_stack() -> None:
    deep = read("deep.py", "(" * 100_000 + "\n")
    assert deep.symbols == []
    nested = read("nested.py", "x = " + "[" * 20_000 + "]" * 20_000 + "\ndef after(): pass\n")
    assert nested.symbols[-1].name == "after"
    classes = "".join(f"{' ' * depth}class C{depth}:\n" for depth in range(300)) + " " * 300 + "pass\n"
    assert read("classes.py", classes).symbols[-1].qualified.startswith("C0.C1.")


def test_a_parse_that_takes_too_long_is_given_up() -> None:
    ticks = iter(range(0, 1_000_000, 10))
    grammar = grammar_of("a.py")
    assert grammar is not None
    given_up = extracted(grammar, "x = 1\n" * 50_000, clock_s=lambda: float(next(ticks)))
    assert given_up.cut
    assert given_up.symbols == []


def test_counts_are_bounded() -> None:
    many = read("many.py", "".join(f"def f{number}(): pass\n" for number in range(6_000)))
    assert many.cut
    assert len(many.symbols) == 5_000


def test_any_bytes_of_a_source_can_be_missing() -> None:
    rng = random.Random(7)
    for path, text, *_ in SOURCES.values():
        for _ in range(5):
            start = rng.randrange(len(text))
            read(path, text[:start] + text[start + rng.randrange(40) :])


def test_a_comment_belongs_to_what_stands_right_below_it() -> None:
    found = read("a.js", "// far away\n\nfunction one() {}\n\n// near\nfunction two() {}\nlet x = 1; // beside\nfunction three() {}\n")
    assert {one.name: one.docstring for one in found.symbols} == {"one": "", "two": "near", "x": "", "three": ""}


def test_headers_and_scripts_are_known_by_what_they_hold() -> None:
    names = [
        grammar.name if (grammar := grammar_of(path, head)) else ""
        for path, head in [
            ("a.h", "int f(void);"),
            ("a.h", "class A {};"),
            ("run", "#!/usr/bin/env python3\n"),
            ("run", "#!/bin/sh\n"),
            ("A.PY", ""),
            ("notes.txt", ""),
        ]
    ]
    assert names == ["c", "cpp", "python", "", "python", ""]
