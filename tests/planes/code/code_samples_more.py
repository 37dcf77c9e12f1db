"""More small invented files: Ruby, PHP and C#."""

from collections.abc import Mapping

from loom.planes.code.extract import BASE, CALL, IMPORT, MEMBER_CALL

Pairs = set[tuple[str, str]]
Triples = set[tuple[str, str, str]]
Sample = tuple[str, str, Pairs, Triples, tuple[str, str]]
"""Path, text, (kind, name) of symbols, some (name, role, receiver) of uses, (symbol, its docstring)."""

MORE: Mapping[str, Sample] = {
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
