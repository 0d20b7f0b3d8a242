from tests.fixtures_nvml import fake_nvml, fake_nvml_library
from tests.integration.agent.conftest import collector, new_agent, processes

__all__ = ["collector", "fake_nvml", "fake_nvml_library", "new_agent", "processes"]
