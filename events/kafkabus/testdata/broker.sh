#!/bin/bash
# Starts one Apache Kafka broker (KRaft, no ZooKeeper) on loopback for the tests
# of this package, and stops it when the command given has ended:
#
#   events/kafkabus/testdata/broker.sh go test ./events/kafkabus -run Broker -count=1
#
# The command finds the address in CODEA1_KAFKA; clients there may do everything.
# At the address in CODEA1_KAFKA_SASL a client logs in as a user of acls.txt, with
# the password p-USER, and access control lists limit it.
#
# Needs Java 17 and Maven; the jars come from Maven Central and are kept in
# KAFKA_JARS, by default ${XDG_CACHE_HOME:-~/.cache}/codea1-kafka.
set -eu

version=3.9.1
port=${KAFKA_PORT:-19092}
controller=$((port + 1))
sasl=$((port + 2))
users=$(grep -v '^#' "$(dirname "$0")/../acls.txt" | cut -d' ' -f1 | sort -u)
jars=${KAFKA_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/codea1-kafka/$version}

[ $# -gt 0 ] || { echo "usage: $0 COMMAND..." >&2; exit 2; }

if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
	echo "port $port is in use, perhaps by another broker: choose another one with KAFKA_PORT" >&2
	exit 1
fi
if [ ! -e "$jars/.complete" ]; then
	mkdir -p "$jars"
	cat > "$jars/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>codea1</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
	timeout 300 mvn -q -B -f "$jars/pom.xml" dependency:copy-dependencies -DoutputDirectory="$jars"
	touch "$jars/.complete"
fi

logins=
for user in $users; do
	logins="$logins user_$user=\"p-$user\""
done

data=$(mktemp -d)
broker=
finish() {
	if [ -n "$broker" ]; then
		touch "$data/stop"
		kill -KILL $(cat "$data/pid") 2>/dev/null || true
		wait "$broker" 2>/dev/null || true
	fi
	rm -rf "$data"
}
trap finish EXIT
trap 'exit 130' INT TERM

cat > "$data/server.properties" <<CONFIG
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller,SASL_PLAINTEXT://127.0.0.1:$sasl
advertised.listeners=PLAINTEXT://127.0.0.1:$port,SASL_PLAINTEXT://127.0.0.1:$sasl
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required $logins;
log.dirs=$data/log
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=1000
CONFIG

kafka=(java -Xms256m -Xmx512m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$jars/*")
id=$("${kafka[@]}" kafka.tools.StorageTool random-uuid)
"${kafka[@]}" kafka.tools.StorageTool format -t "$id" -c "$data/server.properties" > "$data/format.txt" 2>&1 ||
	{ cat "$data/format.txt" >&2; exit 1; }
# A broker that is killed comes back: tests do that, by the process id in
# CODEA1_KAFKA_PIDFILE. It stays away while that file has a neighbour "hold".
supervise() {
	while [ ! -e "$data/stop" ]; do
		if [ -e "$data/hold" ]; then
			sleep 0.05
			continue
		fi
		timeout "${KAFKA_SECONDS:-900}" "${kafka[@]}" kafka.Kafka "$data/server.properties" >> "$data/broker.txt" 2>&1 &
		until pgrep -P $! > "$data/pid" || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
		wait $! || true
		sleep 0.2
	done
}
supervise 2>/dev/null &
broker=$!

# The process is there long before the port is.
tries=0
until (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
	tries=$((tries + 1))
	if [ $tries -gt 120 ] || ! kill -0 "$broker" 2>/dev/null; then
		cat "$data/broker.txt" >&2
		exit 1
	fi
	sleep 0.5
done

CODEA1_KAFKA=127.0.0.1:$port CODEA1_KAFKA_SASL=127.0.0.1:$sasl CODEA1_KAFKA_PIDFILE=$data/pid "$@"
