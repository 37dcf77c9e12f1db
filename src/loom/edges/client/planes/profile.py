# Generated from the registry by `make docs`. Do not edit.
"""The operations of `profile` as methods."""

from typing import Unpack

from loom.edges.client.planes.profile_fields import (
    ProfileActivityFields,
    ProfileAppendFields,
    ProfileEvidenceFields,
    ProfileListFields,
    ProfileReadsFields,
    ProfileRebuildFields,
    ProfileRenderFields,
    ProfileReplaceFields,
    ProfileSchemaDeleteFields,
    ProfileSchemaGetFields,
    ProfileSchemaSetFields,
    ProfileSetFields,
    ProfileStructuredFields,
    ProfileUsersFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.planes.profile.activity import ActivityAnswer
from loom.planes.profile.fields import SectionAnswer
from loom.planes.profile.listing import ListAnswer
from loom.planes.profile.reading import RenderAnswer
from loom.planes.profile.reads import ReadsAnswer
from loom.planes.profile.structured.ops_read import EvidenceAnswer, RebuildAnswer, StructuredAnswer, UsersAnswer
from loom.planes.profile.structured.ops_schema import SchemaAnswer, SchemaGetAnswer
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

    def evidence(self, **fields: Unpack[ProfileEvidenceFields]) -> EvidenceAnswer:
        """See which memories each value of a user's structured profile comes from, and whether they still stand."""
        return self._run("profile.evidence", EvidenceAnswer, fields)

    def list(self, **fields: Unpack[ProfileListFields]) -> ListAnswer:
        """List the profile's sections with the room each has left; profile.render reads them as one text."""
        return self._run("profile.list", ListAnswer, fields)

    def reads(self, **fields: Unpack[ProfileReadsFields]) -> ReadsAnswer:
        """See how often each agent read the profile on each of the last days."""
        return self._run("profile.reads", ReadsAnswer, fields)

    def rebuild(self, **fields: Unpack[ProfileRebuildFields]) -> RebuildAnswer:
        """Build a user's structured profile anew, soon, whether or not something changed."""
        return self._run("profile.rebuild", RebuildAnswer, fields)

    def render(self, **fields: Unpack[ProfileRenderFields]) -> RenderAnswer:
        """Read the whole profile as one fragment for a prompt: who the user is, what they want, how they like it."""
        return self._run("profile.render", RenderAnswer, fields)

    def replace(self, **fields: Unpack[ProfileReplaceFields]) -> SectionAnswer:
        """Change every occurrence of a text inside a profile section to another."""
        return self._run("profile.replace", SectionAnswer, fields)

    def schema_delete(self, **fields: Unpack[ProfileSchemaDeleteFields]) -> SchemaAnswer:
        """Delete the JSON Schema of the namespace's structured profiles; none are built or shown from then on."""
        return self._run("profile.schema_delete", SchemaAnswer, fields)

    def schema_get(self, **fields: Unpack[ProfileSchemaGetFields]) -> SchemaGetAnswer:
        """Read the JSON Schema of the namespace's structured profiles, now or in an earlier version."""
        return self._run("profile.schema_get", SchemaGetAnswer, fields)

    def schema_set(self, **fields: Unpack[ProfileSchemaSetFields]) -> SchemaAnswer:
        """Set the JSON Schema that every user's structured profile of the namespace has; profiles are built anew."""
        return self._run("profile.schema_set", SchemaAnswer, fields)

    def set(self, **fields: Unpack[ProfileSetFields]) -> SetAnswer:
        """Create a profile section, or replace the text of an existing one as a whole."""
        return self._run("profile.set", SetAnswer, fields)

    def structured(self, **fields: Unpack[ProfileStructuredFields]) -> StructuredAnswer:
        """Read a user's structured profile, shaped by the namespace's schema, and whether it is up to date."""
        return self._run("profile.structured", StructuredAnswer, fields)

    def users(self, **fields: Unpack[ProfileUsersFields]) -> UsersAnswer:
        """List the users of a namespace who have memories, each with the state of their structured profile."""
        return self._run("profile.users", UsersAnswer, fields)


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

    async def evidence(self, **fields: Unpack[ProfileEvidenceFields]) -> EvidenceAnswer:
        """See which memories each value of a user's structured profile comes from, and whether they still stand."""
        return await self._run("profile.evidence", EvidenceAnswer, fields)

    async def list(self, **fields: Unpack[ProfileListFields]) -> ListAnswer:
        """List the profile's sections with the room each has left; profile.render reads them as one text."""
        return await self._run("profile.list", ListAnswer, fields)

    async def reads(self, **fields: Unpack[ProfileReadsFields]) -> ReadsAnswer:
        """See how often each agent read the profile on each of the last days."""
        return await self._run("profile.reads", ReadsAnswer, fields)

    async def rebuild(self, **fields: Unpack[ProfileRebuildFields]) -> RebuildAnswer:
        """Build a user's structured profile anew, soon, whether or not something changed."""
        return await self._run("profile.rebuild", RebuildAnswer, fields)

    async def render(self, **fields: Unpack[ProfileRenderFields]) -> RenderAnswer:
        """Read the whole profile as one fragment for a prompt: who the user is, what they want, how they like it."""
        return await self._run("profile.render", RenderAnswer, fields)

    async def replace(self, **fields: Unpack[ProfileReplaceFields]) -> SectionAnswer:
        """Change every occurrence of a text inside a profile section to another."""
        return await self._run("profile.replace", SectionAnswer, fields)

    async def schema_delete(self, **fields: Unpack[ProfileSchemaDeleteFields]) -> SchemaAnswer:
        """Delete the JSON Schema of the namespace's structured profiles; none are built or shown from then on."""
        return await self._run("profile.schema_delete", SchemaAnswer, fields)

    async def schema_get(self, **fields: Unpack[ProfileSchemaGetFields]) -> SchemaGetAnswer:
        """Read the JSON Schema of the namespace's structured profiles, now or in an earlier version."""
        return await self._run("profile.schema_get", SchemaGetAnswer, fields)

    async def schema_set(self, **fields: Unpack[ProfileSchemaSetFields]) -> SchemaAnswer:
        """Set the JSON Schema that every user's structured profile of the namespace has; profiles are built anew."""
        return await self._run("profile.schema_set", SchemaAnswer, fields)

    async def set(self, **fields: Unpack[ProfileSetFields]) -> SetAnswer:
        """Create a profile section, or replace the text of an existing one as a whole."""
        return await self._run("profile.set", SetAnswer, fields)

    async def structured(self, **fields: Unpack[ProfileStructuredFields]) -> StructuredAnswer:
        """Read a user's structured profile, shaped by the namespace's schema, and whether it is up to date."""
        return await self._run("profile.structured", StructuredAnswer, fields)

    async def users(self, **fields: Unpack[ProfileUsersFields]) -> UsersAnswer:
        """List the users of a namespace who have memories, each with the state of their structured profile."""
        return await self._run("profile.users", UsersAnswer, fields)
