# SPDX-License-Identifier: MIT
"""ClickHouse servers (Debian's package) on loopback ports, each with its own folder, as the shards of one cluster."""
import shutil
import socket
import subprocess
import time
import urllib.request

from harness import cases

CONFIG = """<yandex>
<logger><level>warning</level><log>{place}/log</log><errorlog>{place}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{native}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{place}/data/</path><tmp_path>{place}/tmp/</tmp_path><users_config>{place}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>
<remote_servers><hotfn>{shards}</hotfn></remote_servers>
</yandex>"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>{}</port></replica></shard>"
USERS = """<yandex><profiles><default></default></profiles><quotas><default></default></quotas>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default></users></yandex>"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Server:
    def __init__(self, place, http, native, shards):
        self.place, self.http, self.native, self.process = place, http, native, None
        place.mkdir(parents=True)
        (place / "config.xml").write_text(CONFIG.format(place=place, http=http, native=native, shards=shards))
        (place / "users.xml").write_text(USERS)

    def start(self):
        with open(self.place / "output", "ab") as output:
            self.process = subprocess.Popen(["clickhouse-server", f"--config-file={self.place}/config.xml"], stdout=output,
                                            stderr=output)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.ask("SELECT 1") == "1":
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"clickhouse-server did not start: {(self.place / 'output').read_text()[-2000:]}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, sql):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/", sql.encode(), timeout=120) as answer:
            return answer.read().decode().strip()


class Servers:
    def __init__(self, place, count=2):
        if not shutil.which("clickhouse-server"):
            raise cases.Skipped("clickhouse-server is not installed (Debian: clickhouse-server)")
        ports = free_ports(2 * count)
        shards = "".join(SHARD.format(port) for port in ports[count:])
        self.servers = [Server(place / f"clickhouse{i}", ports[i], ports[count + i], shards) for i in range(count)]
        self.option = ("--clickhouse", ",".join(f"http://127.0.0.1:{port}" for port in ports[:count]))

    def __enter__(self):
        for server in self.servers:
            server.start()
        return self

    def __exit__(self, *_):
        for server in self.servers:
            if server.process and server.process.poll() is None:
                server.kill()

    def __getitem__(self, index):
        return self.servers[index]


def wait_until_delivered(c, app="game", seconds=120, **parameters):
    """The answer to a query as soon as nothing is missing."""
    end = time.monotonic() + seconds
    while True:
        answer = c.get("hot", app=app, timeout=120, **parameters)
        if answer["missing"] is None:
            return answer
        assert time.monotonic() < end, (answer["missing"], c.log.read_text()[-2000:])
        time.sleep(0.1)
