# Generated from the registry by `make docs`. Do not edit.
"""The operations of `profile` as methods."""

from typing import Unpack

from loom.edges.client.planes.profile_fields import (
    ProfileActivityFields,
    ProfileAppendFields,
    ProfileRenderFields,
    ProfileReplaceFields,
    ProfileSetFields,
    ProfileStructuredFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.planes.profile.activity import ActivityAnswer
from loom.planes.profile.fields import SectionAnswer
from loom.planes.profile.reading import RenderAnswer, StructuredAnswer
from loom.planes.profile.writing import SetAnswer


class Profile:
    """The operations of `profile`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def activity(self, **fields: Unpack[ProfileActivityFields]) -> ActivityAnswer:
        """See which agents read the profile lately, when, and how often."""
        return self._run("profile.activity", ActivityAnswer, fields)

    def append(self, **fields: Unpack[ProfileAppendFields]) -> SectionAnswer:
        """Add text to the end of a profile section; many agents may append at once and nothing is lost."""
        return self._run("profile.append", SectionAnswer, fields)

    def render(self, **fields: Unpack[ProfileRenderFields]) -> RenderAnswer:
        """Read the whole profile as one fragment for a prompt: who the user is, what they want, how they like it."""
        return self._run("profile.render", RenderAnswer, fields)

    def replace(self, **fields: Unpack[ProfileReplaceFields]) -> SectionAnswer:
        """Change every occurrence of a text inside a profile section to another."""
        return self._run("profile.replace", SectionAnswer, fields)

    def set(self, **fields: Unpack[ProfileSetFields]) -> SetAnswer:
        """Create a profile section, or replace the text of an existing one as a whole."""
        return self._run("profile.set", SetAnswer, fields)

    def structured(self, **fields: Unpack[ProfileStructuredFields]) -> StructuredAnswer:
        """Read a user's structured profile, shaped by the namespace's schema, and whether it is up to date."""
        return self._run("profile.structured", StructuredAnswer, fields)


class AsyncProfile:
    """The operations of `profile`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def activity(self, **fields: Unpack[ProfileActivityFields]) -> ActivityAnswer:
        """See which agents read the profile lately, when, and how often."""
        return await self._run("profile.activity", ActivityAnswer, fields)

    async def append(self, **fields: Unpack[ProfileAppendFields]) -> SectionAnswer:
        """Add text to the end of a profile section; many agents may append at once and nothing is lost."""
        return await self._run("profile.append", SectionAnswer, fields)

    async def render(self, **fields: Unpack[ProfileRenderFields]) -> RenderAnswer:
        """Read the whole profile as one fragment for a prompt: who the user is, what they want, how they like it."""
        return await self._run("profile.render", RenderAnswer, fields)

    async def replace(self, **fields: Unpack[ProfileReplaceFields]) -> SectionAnswer:
        """Change every occurrence of a text inside a profile section to another."""
        return await self._run("profile.replace", SectionAnswer, fields)

    async def set(self, **fields: Unpack[ProfileSetFields]) -> SetAnswer:
        """Create a profile section, or replace the text of an existing one as a whole."""
        return await self._run("profile.set", SetAnswer, fields)

    async def structured(self, **fields: Unpack[ProfileStructuredFields]) -> StructuredAnswer:
        """Read a user's structured profile, shaped by the namespace's schema, and whether it is up to date."""
        return await self._run("profile.structured", StructuredAnswer, fields)
