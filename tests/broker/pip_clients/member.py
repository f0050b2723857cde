"""One consumer: ``member.py SERVERS GROUP CLIENT ASSIGNOR TOPIC,TOPIC`` prints what it has, and leaves when told.

``member.py SERVERS TOPIC:PARTITIONS ...`` creates topics. It runs in the environment of the clients, without this
project.
"""

import asyncio
import json
import sys
import threading

STOP = threading.Event()
SESSION_MS = 6_000


def say(member, partitions):
    listed = sorted(f"{partition.topic}-{partition.partition}" for partition in partitions)
    print(json.dumps({"member": member, "assigned": listed}), flush=True)


def librdkafka(servers, group, assignor, topics):
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": servers, "group.id": group, "partition.assignment.strategy": assignor}
    consumer = Consumer({**settings, "session.timeout.ms": SESSION_MS, "log_level": 0})
    consumer.subscribe(topics)
    while not STOP.is_set():
        consumer.poll(0.2)
        say(consumer.memberid(), consumer.assignment())
    consumer.close()


def kafka_python(servers, group, assignor, topics):
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    own = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor)
    by_name = dict(zip(("range", "roundrobin", "sticky", "cooperative-sticky"), own, strict=True))
    consumer = KafkaConsumer(
        *topics,
        bootstrap_servers=servers,
        group_id=group,
        session_timeout_ms=SESSION_MS,
        metadata_max_age_ms=2_000,
        partition_assignment_strategy=[by_name[assignor]],
    )
    while not STOP.is_set():
        consumer.poll(200)
        generation = consumer._coordinator.generation()
        say(None if generation is None else generation.member_id, consumer.assignment())
    consumer.close()


def aiokafka(servers, group, assignor, topics):
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    own = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)
    by_name = dict(zip(("range", "roundrobin", "sticky"), own, strict=True))

    async def run():
        consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=servers,
            group_id=group,
            session_timeout_ms=SESSION_MS,
            metadata_max_age_ms=2_000,
            partition_assignment_strategy=[by_name[assignor]],
        )
        await consumer.start()
        while not STOP.is_set():
            await asyncio.sleep(0.2)
            say(consumer._coordinator.member_id, consumer.assignment())
        await consumer.stop()

    asyncio.run(run())


def create(servers, topics):
    from confluent_kafka.admin import AdminClient, NewTopic

    wanted = [NewTopic(name, int(count), 1) for name, count in (topic.split(":") for topic in topics)]
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.create_topics(wanted).values():
        done.result(30)


def wait_for_stop():
    sys.stdin.readline()
    STOP.set()


if __name__ == "__main__":
    if ":" in sys.argv[2]:
        create(sys.argv[1], sys.argv[2:])
    else:
        threading.Thread(target=wait_for_stop, daemon=True).start()
        clients = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}
        _, servers, group, client, assignor, topics = sys.argv
        clients[client](servers, group, assignor, topics.split(","))
