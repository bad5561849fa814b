tare run /root/kill.yaml --results /root/kill-%[1]s & pid=$!
n=0
until grep -lz ^TARE_SANDBOX= /proc/[0-9]*/environ >/dev/null 2>&1 && [ -n "$(ls /run/netns 2>/dev/null)" ]; do
	kill -0 $pid
	n=$((n+1)); [ $n -lt 600 ]
	sleep 0.1
done
sleep 1
kill -9 $pid
wait $pid || [ $? = 137 ]
