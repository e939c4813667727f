"""The cluster file, typed. One idea: what a person writes about a cluster is checked once, whole,
and then frozen.

::

    cluster.yaml ──> Marked ──────> Cluster
                     plain values   typed, every name in the catalog,
                     and lines      every quantity in base units

A :class:`Cluster` is hashable and never changes; ``model_copy(update={…})`` makes a variant. It
remembers where each key stands in its file (:meth:`Cluster.where`), so that later checks can point
there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    InstanceOf,
    PrivateAttr,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from eastwest.catalog.load import Catalog, Fact, catalog
from eastwest.catalog.technology import Network, named, words
from eastwest.catalog.world import World, nominal, shared_nominal
from eastwest.errors import UserError, nearest
from eastwest.files import read_text
from eastwest.spec.expect import Expectation, parse_expectation
from eastwest.spec.marked_yaml import load
from eastwest.spec.marks import Mark, Marks, Path
from eastwest.spec.names import check_names
from eastwest.spec.nccl import Nccl
from eastwest.spec.overrides import Override, read_overrides
from eastwest.spec.own_entries import KINDS, server_file, with_entries, with_overlays, with_server
from eastwest.spec.own_server import OwnServer
from eastwest.spec.parse import attempt
from eastwest.spec.problems import Collector, SpecError, located
from eastwest.spec.quantities import Count, Rate, Ratio, custom, describe, refused
from eastwest.spec.section import Name, Section

Precision = Literal["bf16", "fp16", "fp8", "fp32"]
Degree = Annotated[int, Field(ge=1, le=1_000_000)]


def _word(network: Network) -> BeforeValidator:
    """Return the check that a value is one of the catalog's words for a network."""

    def check(value: Any, info: ValidationInfo) -> Any:
        known = words(_world(info), network)
        if value in known:
            return value
        close = nearest(value, known) if isinstance(value, str) else None
        hint = f"did you mean '{close}'?" if close else ""
        raise custom(f"expected one of {', '.join(known)}, not {describe(value)}", hint)

    return BeforeValidator(check)


def _world(info: ValidationInfo) -> World:
    """Return the world of the catalog that a file is read with, its own entries among them."""
    return nominal(info.context) if isinstance(info.context, Catalog) else shared_nominal()


Technology = Annotated[str, _word(Network.COMPUTE)]
StorageTechnology = Annotated[str, _word(Network.STORAGE)]


class ComputeNetwork(Section):
    """The network between the GPUs. Keys of its topology stand beside these, and are kept in
    ``options``."""

    technology: Technology = Field(
        description="How GPUs exchange data, such as infiniband, roce or ethernet-tcp."
    )
    switch: Name = Field(description="The switch, a name from the catalog (eastwest facts switch).")
    topology: Name = Field(
        default="rail-optimised",
        description="How switches are cabled, such as rail-optimised or fat-tree.",
    )
    gpudirect: bool = Field(
        default=True,
        description="Whether NICs read and write GPU memory themselves (GPUDirect RDMA); as usual "
        "for the technology if left out.",
    )
    nic: Name | None = Field(
        default=None, description="The NIC, a name from the catalog; the server's own if left out."
    )
    nics: Annotated[int, Field(ge=1, le=72)] | None = Field(
        default=None, description="Compute NICs of a server; as in the catalog if left out."
    )
    rate_Bps: Rate | None = Field(
        default=None,
        alias="rate",
        description="The rate of one NIC port; the NIC's own if left out.",
    )
    mtu_bytes: Annotated[int, Field(ge=256, le=65_520)] | None = Field(
        default=None,
        alias="mtu",
        description="The MTU in bytes, such as 4096 for RDMA or 9000 for TCP; the usual one if "
        "left out.",
    )
    planes: Annotated[int, Field(ge=1, le=16)] = Field(
        default=1, description="Disjoint copies of the network, one a NIC port."
    )
    sockets: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None,
        description="TCP connections of a NIC to each peer, where it has any.",
    )
    options: tuple[tuple[str, Any], ...] = Field(default=(), json_schema_extra={"internal": True})

    @model_validator(mode="before")
    @classmethod
    def _split(cls, values: Any, info: ValidationInfo) -> Any:
        """Move the keys that are not ours to ``options``: they belong to the topology."""
        if not isinstance(values, dict):
            return values
        own = compute_keys()
        kept = {key: value for key, value in values.items() if key in own}
        usual = named(_world(info), str(values.get("technology")))
        if usual:
            kept.setdefault("gpudirect", usual[0].gpudirect)
        return kept | {
            "options": tuple(
                (key, _frozen(value)) for key, value in values.items() if key not in own
            )
        }

    def option_values(self) -> dict[str, Any]:
        """Return the topology's keys as they stand in the file, for
        :func:`eastwest.spec.parse.parse`."""
        return dict(self.options)


class StorageNetwork(Section):
    """The network between servers and storage targets."""

    technology: StorageTechnology = Field(
        description="How blocks travel, such as nvmeof-rdma or nvmeof-tcp."
    )
    targets: Annotated[int, Field(ge=1, le=65_536)] = Field(
        description="Number of storage targets."
    )
    switch: Name | None = Field(
        default=None, description="The switch; that of the compute network if left out."
    )
    topology: Name = Field(default="fat-tree", description="How switches are cabled.")
    oversubscription: Ratio = Field(
        default=1.0, description="Server bandwidth over uplink bandwidth, such as 4:3."
    )
    drives_per_target: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=24, description="NVMe drives of a target."
    )
    ports_per_target: Annotated[int, Field(ge=1, le=64)] = Field(
        default=2, description="Network ports of a target."
    )


class ManagementNetwork(Section):
    """The network of BMCs, switches' management ports and power units; Gigabit Ethernet is right
    here."""

    # The defaults are those of the DGX H100 SuperPOD (RA-11333-001 V11: 32 racks, 127 servers, 96
    # PDUs).
    switch: Name = Field(default="sn2201", description="The switch, a name from the catalog.")
    servers_per_rack: Annotated[int, Field(ge=1, le=72)] = Field(
        default=4, description="Servers in a rack."
    )
    pdus_per_rack: Annotated[int, Field(ge=0, le=16)] = Field(
        default=3, description="Power distribution units of a rack."
    )


class Networks(Section):
    """The cluster's separate physical networks."""

    compute: ComputeNetwork = Field(description="The network between the GPUs.")
    storage: StorageNetwork | None = Field(
        default=None, description="The storage network; none if left out."
    )
    management: ManagementNetwork = Field(
        default_factory=ManagementNetwork, description="The out-of-band network."
    )


class Parallel(Section):
    """How the model is split over GPUs; what is left out is 1, and ``data`` what remains."""

    tensor: Degree | None = Field(default=None, description="Tensor parallel degree.")
    pipeline: Degree | None = Field(default=None, description="Pipeline stages.")
    data: Degree | None = Field(
        default=None, description="Data parallel replicas; what remains if left out."
    )
    expert: Degree | None = Field(
        default=None, description="Expert parallel degree (mixture of experts only)."
    )
    context: Degree | None = Field(default=None, description="Context parallel degree.")


def _parallel_tag(value: Any) -> str:
    return "<word>" if isinstance(value, str) else "<mapping>"


ParallelOrAuto = Annotated[
    Annotated[Parallel, Tag("<mapping>")] | Annotated[Literal["auto"], Tag("<word>")],
    Discriminator(_parallel_tag),
]


class Job(Section):
    """The training job that the cluster is judged by."""

    model: Name = Field(
        description="A model of the catalog, or the path of a Hugging Face config.json."
    )
    parallel: ParallelOrAuto = Field(
        default="auto", description="How the model is split over GPUs, or auto."
    )
    global_batch: Annotated[int, Field(ge=1, le=10**9)] = Field(
        description="Sequences of one optimizer step."
    )
    micro_batch: Annotated[int, Field(ge=1, le=65_536)] = Field(
        default=1, description="Sequences a GPU computes at once."
    )
    sequence: Annotated[int, Field(ge=1, le=10**8)] = Field(description="Tokens of a sequence.")
    precision: Precision = Field(
        default="bf16", description="Arithmetic of matrix products: bf16, fp16, fp8 or fp32."
    )
    recompute: Literal["none", "selective", "full"] = Field(
        default="none", description="What is computed again backwards."
    )
    zero: Annotated[int, Field(ge=0, le=3)] = Field(
        default=1,
        description="What data parallel replicas share: 0 nothing, 1 optimizer, 2 and "
        "gradients, 3 and weights.",
    )
    overlap: bool = Field(
        default=True, description="Whether gradients travel while the backward pass still computes."
    )
    # Megatron-LM accumulates and reduces in FP32 with --bf16 (arguments.py:
    # accumulate_allreduce_grads_in_fp32).
    gradient_precision: Literal["fp32", "bf16", "fp16"] = Field(
        default="fp32", description="Precision of gradients exchanged."
    )


def _expectation(value: Any) -> Any:
    if isinstance(value, Expectation):
        return value
    if not isinstance(value, str):
        raise custom(f"expected a line such as 'step <= 12s', not {describe(value)}")
    try:
        return parse_expectation(value)
    except UserError as error:
        raise refused(error) from None


Expect = Annotated[
    InstanceOf[Expectation],
    BeforeValidator(_expectation),
    WithJsonSchema({"type": "string", "examples": ["all_reduce 1GiB >= 350GB/s", "step <= 12s"]}),
]


def _list_as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else () if value is None else value


def _overrides(value: Any) -> Any:
    return read_overrides(value) if isinstance(value, Mapping) else value


Overrides = Annotated[
    tuple[InstanceOf[Override], ...],
    BeforeValidator(_overrides),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["number", "string"]}}),
]


_SERVER = {
    "anyOf": [{"type": "string", "minLength": 1, "maxLength": 200}, OwnServer.model_json_schema()]
}
_ENTRIES = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        kind: {"type": "object", "additionalProperties": {"type": "object"}} for kind in KINDS
    },
}


class Cluster(Section):
    """A cluster and its job, as its file tells, checked."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        description="A name for reports."
    )
    servers: Count = Field(description="The number of servers.")
    server: Annotated[Name, WithJsonSchema(_SERVER)] = Field(
        description="The server: a name from the catalog (eastwest facts server), the path of a "
        "file that describes it, or its description here."
    )
    own: Annotated[tuple[InstanceOf[Fact], ...], WithJsonSchema(_ENTRIES)] = Field(
        default=(),
        alias="catalog",
        description="Entries of one's own beside the catalog's: GPUs, NICs, switches, "
        "technologies, servers.",
    )
    gpus: Annotated[int, Field(ge=1, le=10**8)] | None = Field(
        default=None,
        description="The number of GPUs, as a check: servers times GPUs used of a server.",
    )
    gpus_per_server: Annotated[int, Field(ge=1, le=144)] | None = Field(
        default=None,
        description="GPUs of each server that the job uses, the first ones; all if left out.",
    )
    networks: Networks = Field(description="The networks: compute, storage, management.")
    job: Job = Field(description="The training job.")
    nccl: Nccl = Field(
        default_factory=Nccl, description="NCCL's environment variables, by their own names."
    )
    expect: Annotated[
        tuple[Expect, ...], BeforeValidator(_list_as_tuple), Field(max_length=100)
    ] = Field(default=(), description="What must hold, one line each, such as 'step <= 12s'.")
    overrides: Overrides = Field(
        default=(), description="Facts set in place: 'qm9700.price_USD: 45000'."
    )
    _marks: Marks = PrivateAttr(default_factory=Marks)

    @property
    def marks(self) -> Marks:
        """Where each key stands in the file."""
        return self._marks

    def where(self, path: str, at_key: bool = False) -> str:
        """Return ``file:line:column: key.path`` of a key path such as
        ``networks.compute.topology``.

        Parameters
        ----------
        path : the keys joined by dots; empty for the file itself.
        at_key : whether the key is meant instead of its value.
        """
        return self._marks.where(tuple(path.split(".")) if path else (), at_key)

    def with_line(self, error: UserError) -> UserError:
        """Return an error whose place is in this cluster's file with the line shown beneath."""
        return error if isinstance(error, SpecError) else SpecError((located(error, self._marks),))

    def facts(self) -> Catalog:
        """Return the catalog with the file's own entries and overrides in place."""
        return _facts(self.own, self.overrides)

    def built_gpus(self) -> int:
        """Return the number of GPUs that one server has."""
        return int(self.facts().fact("server", self.server, "gpus").value)

    def server_gpus(self) -> int:
        """Return the number of GPUs of one server that are used."""
        return self.gpus_per_server or self.built_gpus()

    def total_gpus(self) -> int:
        """Return the number of GPUs of the cluster that are used."""
        return self.servers * self.server_gpus()

    def using(self, gpus_per_server: int) -> Cluster:
        """Return the same cluster with so many GPUs of each server in use.

        Raises UserError if a server does not have them.
        """
        if not 1 <= gpus_per_server <= self.built_gpus():
            raise UserError(f"a {self.server} has {self.built_gpus()} GPUs, not {gpus_per_server}")
        return self.model_copy(update={"gpus_per_server": gpus_per_server})

    def config_path(self) -> FilePath | None:
        """Return the path of the job's config.json, relative to the cluster file; None for a model
        of the catalog."""
        return config_path(self.job.model, self._marks.name)


def compute_keys() -> dict[str, str]:
    """Return the keys of a compute network that are the same for every topology, with their
    descriptions."""
    fields = ComputeNetwork.model_fields.items()
    return {f.alias or name: f.description or name for name, f in fields if name != "options"}


def config_path(model: str, file: str) -> FilePath | None:
    """Return the path that a job's model names, or None if it names a model of the catalog.

    Parameters
    ----------
    model : what ``job.model`` says.
    file : the cluster file's path, from whose folder the model's is meant.
    """
    if "/" in model or model.endswith(".json"):
        return FilePath(file).parent / model
    return None


@functools.lru_cache(maxsize=32)
def _facts(own: tuple[Fact, ...], overrides: tuple[Override, ...]) -> Catalog:
    facts = catalog().with_facts(own) if own else catalog()
    return facts.with_overrides({o.key: o.value for o in overrides}) if overrides else facts


def load_cluster(path: str | FilePath, overlays: Sequence[str | FilePath] = ()) -> Cluster:
    """Read and check a cluster file, with entries of overlay files beside the catalog's. Raises
    UserError with all that is wrong in it.

    Parameters
    ----------
    path : of the cluster file.
    overlays : files with entries of one's own.
    """
    return parse_cluster(read_text(path, "cluster file"), str(path), overlays)


def parse_cluster(
    text: str, name: str = "cluster.yaml", overlays: Sequence[str | FilePath] = ()
) -> Cluster:
    """Read and check the text of a cluster file; ``name`` stands in messages, and paths are
    relative to it.

    Parameters
    ----------
    text : the content of a cluster file.
    name : stands for the file in messages.
    overlays : files with entries of one's own.

    Raises SpecError with all that is wrong, each with its line.
    """
    facts = with_overlays(catalog(), tuple(str(file) for file in overlays))
    marked = load(text, name)
    values, collector = dict(marked.value), Collector(marked.marks)
    facts = _described(values, facts, collector)
    plain = dict(values)
    if isinstance(values.get("overrides"), dict):
        values["overrides"] = read_overrides(values["overrides"], collector, facts)
    own = tuple(fact for key, fact in facts.facts.items() if key not in catalog().facts)
    cluster = attempt(Cluster, values | {"catalog": own}, collector, context=facts)
    check_names(plain, values.get("overrides"), collector, config_path, facts)
    collector.done()
    if cluster is None:
        raise UserError("the file cannot be read", where=name)
    cluster._marks = marked.marks
    return cluster


def _described(values: dict[str, Any], facts: Catalog, collector: Collector) -> Catalog:
    """Return the catalog with what the file itself describes; put the name of its server in place
    of the description."""
    entries, server = values.pop("catalog", None), values.get("server")
    if entries is not None:
        if isinstance(entries, Mapping):
            facts = with_entries(facts, entries, collector, ("catalog",))
        else:
            what = f"expected kinds with entries, not {describe(entries)}"
            collector.add(("catalog",), what, f"kinds are {', '.join(KINDS)}")
    found = None
    if isinstance(server, Mapping):
        facts, found = with_server(facts, server, collector, ("server",))
    elif isinstance(server, str) and ("/" in server or server.endswith((".yaml", ".yml"))):
        file = FilePath(collector.marks.name).parent / server
        facts, found = server_file(facts, str(file), collector, ("server",))
    if found is not None:
        # Where the description is wrong, any name stands in: the file is refused anyway.
        values["server"] = found or facts.ids("server")[0]
    return facts


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _frozen(item)) for key, item in value.items())
    return value


__all__ = [
    "Cluster",
    "ComputeNetwork",
    "Job",
    "ManagementNetwork",
    "Mark",
    "Marks",
    "Networks",
    "Parallel",
    "Path",
    "StorageNetwork",
    "load_cluster",
    "parse_cluster",
]
