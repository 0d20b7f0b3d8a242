"""What was found of a run and where: the most trusted source of each fact."""

from flopwatch.query import FoundFact
from flopwatch.wire import RunFacts
from flopwatch_collector.views.found import found_facts


def test_each_fact_is_of_its_most_trusted_source_and_what_nobody_told_is_absent() -> None:
    runs = (
        RunFacts(source="file", origin="config.json", shape={"n_layers": 2}, dtype="fp16"),
        RunFacts(
            source="log", origin="Megatron argument block", world_size=8, global_batch_size=64, dtype="bf16"
        ),
        RunFacts(source="log", origin="Megatron argument block", world_size=16, session=1),
        RunFacts(source="sdk", origin="SDK", sequence_length=4096),
        RunFacts(source="declared", origin="flopwatch job set", global_batch_size=128),
    )

    assert found_facts(runs) == (
        FoundFact(name="shape", value=None, source="file", origin="config.json"),
        FoundFact(name="world_size", value=16, source="log", origin="Megatron argument block"),
        FoundFact(name="global_batch_size", value=128, source="declared", origin="flopwatch job set"),
        FoundFact(name="sequence_length", value=4096, source="sdk", origin="SDK"),
        FoundFact(name="dtype", value="bf16", source="log", origin="Megatron argument block"),
    )
