package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// Where event streams publish. The queue keeps the last messages only: what consumes them
// would take part of the broker's time.
const (
	streamExchange = "loadtest"
	streamTopic    = "messages"
	streamPath     = "/bench/messages"
	streamBody     = 1 << 10 // bytes
	streamKept     = 10_000  // messages
)

const streamSettings = "streaming:\n  enabled: true\n  allow_addresses: [127.0.0.0/8]\n"

// measureStreams compares requests whose bodies are published to RabbitMQ with confirms.
func measureStreams(ctx context.Context, b *bench) error {
	broker, err := testenv.StartRabbitMQ()
	if err != nil {
		return err
	}
	defer broker.Stop()
	if err := declare(broker.Addr); err != nil {
		return err
	}
	started, err := b.startAll(ctx, b.chosen([]contender{
		{"fasthttp and amqp091-go", startAMQP(broker.Addr)},
		{"fasthttp and amqp091-go, again", startAMQP(broker.Addr)},
		{"Sluice, keyless", startStream(broker.Addr, setup{})},
		{"Sluice, token + policy + rate + quota", startStream(broker.Addr, setup{keys: someKeys})},
		{"Sluice, keyless, with a mapping", startStream(broker.Addr, setup{}, map[string]any{"mapping": "root = this\nroot.seen = true"})},
	}))
	if err != nil {
		return err
	}
	defer b.profileAll("streams", started)()
	turns, err := b.rotate(ctx, started)
	if err != nil {
		return err
	}
	b.printf("### Messages of 1 KiB from HTTP to RabbitMQ, confirmed: CPU time of each, %d clients, %d rounds of %v; the ratio is to fasthttp and amqp091-go\n\n", b.conns, b.rounds, b.round)
	b.printCPU(turns)
	return nil
}

// declare declares the queue of messages.
func declare(addr string) error {
	conn, err := amqp.Dial("amqp://" + addr + "/")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the queue is there by then
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.ExchangeDeclare(streamExchange, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return err
	}
	if _, err := ch.QueueDeclare(streamTopic, true, false, false, false, amqp.Table{"x-max-length": int32(streamKept)}); err != nil {
		return err
	}
	return ch.QueueBind(streamTopic, streamTopic, streamExchange, false, nil)
}

// startAMQP starts the least of a bridge.
func startAMQP(broker string) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		addr, err := rig.FreeAddress()
		if err != nil {
			return nil, err
		}
		p, err := b.rig.Start(ctx, rig.Command{
			Name: "amqp", Path: filepath.Join(b.bin, "amqp"), Args: []string{"-addr", addr, "-broker", broker, "-exchange", streamExchange, "-topic", streamTopic},
			Env: b.goEnv(), Ready: addr,
		})
		r := &running{process: p, addr: addr, body: []byte{}}
		r.request = posts(r)
		return r, err
	}
}

// startStream starts a gateway with a stream from HTTP to the broker.
func startStream(broker string, s setup, steps ...map[string]any) func(context.Context, *bench) (*running, error) {
	s.apis, s.patient, s.settings = 1, true, streamSettings
	s.streams = map[string]any{"messages": map[string]any{
		"input":    map[string]any{"http_server": map[string]any{"path": "/messages"}},
		"pipeline": map[string]any{"processors": steps},
		"output": map[string]any{"msgbroker": map[string]any{
			"addresses": []string{"amqp://" + broker}, "exchange": streamExchange, "topic": streamTopic,
		}},
	}}
	return func(ctx context.Context, b *bench) (*running, error) {
		s.profiled = b.profiles != ""
		r, err := startSluice(s)(ctx, b)
		if err == nil {
			r.body, r.request = []byte{}, posts(r)
		}
		return r, err
	}
}

// message is what is posted.
var message = `{"text":"` + strings.Repeat("x", streamBody-len(`{"text":""}`)) + `"}`

// posts returns requests that post a message, with keys in turn.
func posts(r *running) func(dst []byte, n uint64) []byte {
	head := "POST " + streamPath + " HTTP/1.1\r\nHost: " + r.addr + "\r\nUser-Agent: loadtest/1.0\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(message)) + "\r\n"
	return func(dst []byte, n uint64) []byte {
		dst = append(dst, head...)
		if len(r.keys) > 0 {
			dst = append(append(append(dst, "Authorization: "...), r.keys[n%uint64(len(r.keys))]...), "\r\n"...)
		}
		return append(append(dst, "\r\n"...), message...)
	}
}

// awaitStream returns once a message is taken.
func awaitStream(ctx context.Context, r *running) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.addr+streamPath, strings.NewReader(message))
		if err != nil {
			return err
		}
		if len(r.keys) > 0 {
			req.Header.Set("Authorization", r.keys[0])
		}
		status := "no answer"
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if status = resp.Status; resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if sleep.For(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("the stream takes no message: %s\n%s", status, r.process.Log())
		}
	}
}
