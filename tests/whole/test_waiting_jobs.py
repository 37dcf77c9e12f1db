"""A built server shows the work that waits in its metrics."""

from pathlib import Path

from starlette.testclient import TestClient

from fakes import HTTP
from loom import compose, config
from loom.access.caller import LOCAL


def test_metrics_tell_of_waiting_jobs(tmp_path: Path) -> None:
    settings = config.load(tmp_path).model_copy(update={"home": tmp_path / "home", "embedder": "hashing"})
    app = compose.build(settings)
    # Nothing is started, so what the append left for later stays there.
    app.dispatcher.call("profile.append", LOCAL, HTTP, {"label": "notes", "addition": "tea"})
    with TestClient(app.asgi, base_url=f"http://{settings.host}:{settings.port}") as client:
        told = client.get("/metrics").text
    assert "loom_jobs_waiting 1.0" in told
    age_s = next(line for line in told.splitlines() if line.startswith("loom_jobs_oldest_seconds"))
    assert 0 <= float(age_s.split()[1]) < 120
    app.close()
