"""What people ask of job types, which applications declare and nodes register."""

from typing import Annotated

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import Name
from spinney.model.errors import NoSuch, UnknownType
from spinney.model.types import TypeSpec
from spinney.model.values.lists import All
from spinney.service.queries import Queries
from spinney.service.service import Service


class ListTypes(Command, route="GET /types"):
    """List job types.

    The job types that nodes have registered, by name, with their stages and the schemas of their parameters."""

    def run(self, service: Service) -> All[TypeSpec]:
        return All(items=[spec for _, spec in sorted(service.part(Queries).types().items())])


class ShowType(Command, route="GET /types/{name}"):
    """Show a job type.

    The job type's stages, its policy, and the JSON schema of its parameters."""

    name: Annotated[Name, Field(description="The job type's name.", examples=["resize"])]

    def run(self, service: Service) -> TypeSpec:
        try:
            return service.part(Queries).type(self.name)
        except UnknownType as error:  # which is a wrong value elsewhere, and here a wrong address
            raise NoSuch(str(error)) from None
