"""One small invented file in each language, with what it defines and uses."""

from collections.abc import Mapping

from code_samples_more import MORE, Sample

from loom.planes.code.extract import BASE, CALL, IMPORT, MEMBER_CALL

SOURCES: Mapping[str, Sample] = {
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
        {
            ("heat", MEMBER_CALL, "self"),
            ("pour", CALL, ""),
            ("inner", CALL, ""),
            ("Vessel", BASE, ""),
            ("Leaf", IMPORT, ""),
        },
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
        {
            ("boil", MEMBER_CALL, "this"),
            ("fill", CALL, ""),
            ("Kettle", CALL, ""),
            ("Vessel", BASE, ""),
            ("Leaf", IMPORT, ""),
        },
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
    **MORE,
}
"""By language."""
