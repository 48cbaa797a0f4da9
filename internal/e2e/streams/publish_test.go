package streams

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// publish publishes messages to a topic, as a program beside the gateway does, and returns
// when the broker has confirmed them.
func publish(p topic, total int, body string) error {
	conn, err := amqp.Dial("amqp://" + p.broker.Addr + "/")
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*rig.Patience)
	defer cancel()
	const ahead = 256
	var waiting []*amqp.DeferredConfirmation
	for i := range total + ahead {
		if i >= ahead || i >= total {
			if len(waiting) > 0 {
				if ok, err := waiting[0].WaitContext(ctx); err != nil || !ok {
					return errors.Join(errors.New("a message is not confirmed"), err)
				}
				waiting = waiting[1:]
			}
		}
		if i >= total {
			continue
		}
		one, err := ch.PublishWithDeferredConfirm(p.name+".x", p.name, false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, MessageId: fmt.Sprintf("m%06d", i), Body: []byte(body),
		})
		if err != nil {
			return err
		}
		waiting = append(waiting, one)
	}
	return nil
}
