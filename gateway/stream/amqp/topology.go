package amqp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/internal/definition/streams"
)

// deliveryLimit is after how many deliveries of a message the broker dead-letters it. It
// ends crash loops. It must be high: a message counts as delivered again each time that a
// gateway hands it back unread, because its clients have left.
const deliveryLimit = 1000

// A queue without a group is for one input alone. It outlives a short lack of demand.
const (
	aloneExpires = time.Minute
	aloneLength  = 10_000
)

// A queue is what an input consumes from.
type queue struct {
	name  string
	topic string
	kind  kind
	args  amqp.Table
}

// kind says what a queue is for.
type kind uint8

const (
	grouped kind = iota // shared by the inputs of a group
	alone               // of one input, while it is connected
	log                 // keeps messages; each reader has a position
)

// queueOf returns the queue of a topic, as §3.5 of the design of streams names them.
func queueOf(c *streams.BrokerInput, topic string) (queue, error) {
	q := queue{topic: topic}
	switch {
	case c.ConsumerGroup != "":
		q.name = "svc." + c.ConsumerGroup + "." + topic
		q.args = amqp.Table{
			"x-queue-type": "quorum", "x-delivery-limit": int32(deliveryLimit),
			"x-dead-letter-exchange": c.Exchange + dead, "x-dead-letter-routing-key": q.name,
			"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
		}
	case c.Retain != nil:
		return logOf(c, topic)
	default:
		q.kind = alone
		q.args = amqp.Table{
			"x-expires": int32(aloneExpires / time.Millisecond), "x-max-length": int32(aloneLength), "x-overflow": "drop-head",
		}
	}
	if len(q.name)+len(dead) > maxShort {
		return q, fmt.Errorf("topic %q: the queue's name svc.<consumer_group>.<topic> has %d bytes; it must not have more than %d", topic, len(q.name), maxShort-len(dead))
	}
	return q, nil
}

// logOf returns the queue that keeps the messages of a topic.
func logOf(c *streams.BrokerInput, topic string) (queue, error) {
	q := queue{name: "svc." + topic + ".log", topic: topic, kind: log, args: amqp.Table{"x-queue-type": "stream"}}
	if c.Retain.MaxAge > 0 {
		q.args["x-max-age"] = strconv.FormatInt(int64(c.Retain.MaxAge/time.Second), 10) + "s"
	}
	if c.Retain.MaxBytes > 0 {
		q.args["x-max-length-bytes"] = c.Retain.MaxBytes
	}
	if len(q.name) > maxShort {
		return q, fmt.Errorf("topic %q: the queue's name svc.<topic>.log has %d bytes; it must not have more than %d", topic, len(q.name), maxShort)
	}
	return q, nil
}

// dead ends the names of where dead letters go.
const dead = ".dead"

// exchange opens a channel and declares the exchange of messages. A user who may not declare
// it can use it if it is there.
func exchange(l *link, name string) (*amqp.Channel, error) {
	for _, declare := range []func(ch *amqp.Channel) error{
		func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(name, amqp.ExchangeTopic, true, false, false, false, nil)
		},
		func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive(name, amqp.ExchangeTopic, true, false, false, false, nil)
		},
	} {
		ch, err := l.conn.Channel()
		if err != nil {
			return nil, err
		}
		if err = declare(ch); err == nil {
			return ch, nil
		}
		l.shut(ch)
		if reply, ok := errors.AsType[*amqp.Error](err); !ok || reply.Code != amqp.AccessRefused {
			return nil, &setupError{"exchange " + name, err}
		}
	}
	return nil, &setupError{"exchange " + name, &amqp.Error{Code: amqp.AccessRefused, Server: true, Reason: "the user may neither declare nor use it"}}
}

// declare declares a queue and binds it to its topic. A queue for one input alone gets a new
// name.
func (q *queue) declare(ch *amqp.Channel, exchange string) error {
	if q.kind == grouped {
		if err := q.declareDead(ch, exchange); err != nil {
			return err
		}
	}
	if q.kind == alone && q.name == "" {
		q.name = "svc.alone." + rand.Text()
	}
	if _, err := ch.QueueDeclare(q.name, q.kind != alone, false, q.kind == alone, false, q.args); err != nil {
		return &setupError{"queue " + q.name, err}
	}
	if err := ch.QueueBind(q.name, q.topic, exchange, false, nil); err != nil {
		return &setupError{"binding of queue " + q.name, err}
	}
	return nil
}

// declareDead declares where the broker puts messages that are rejected.
func (q *queue) declareDead(ch *amqp.Channel, exchange string) error {
	if err := ch.ExchangeDeclare(exchange+dead, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		return &setupError{"exchange " + exchange + dead, err}
	}
	if _, err := ch.QueueDeclare(q.name+dead, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		return &setupError{"queue " + q.name + dead, err}
	}
	if err := ch.QueueBind(q.name+dead, q.name, exchange+dead, false, nil); err != nil {
		return &setupError{"binding of queue " + q.name + dead, err}
	}
	return nil
}
