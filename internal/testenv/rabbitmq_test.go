package testenv_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestABrokerKeepsWhatIsDurableWhenKilled(t *testing.T) {
	b := testenv.OwnRabbitMQ(t)
	declare := func(passive bool) {
		t.Helper()
		conn, err := amqp.Dial("amqp://" + b.Addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		declare := ch.QueueDeclare
		if passive {
			declare = ch.QueueDeclarePassive
		}
		if _, err := declare("kept", true, false, false, false, nil); err != nil {
			t.Error(err)
		}
	}
	declare(false)
	b.SaveQueues(t)
	b.Kill()
	if conn, err := amqp.Dial("amqp://" + b.Addr + "/"); err == nil {
		conn.Close()
		t.Fatal("a killed broker answers")
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	declare(true)
}
