package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchOffset returns the offset that a group has committed for partition 0 of orders.
func fetchOffset(ctx context.Context, client *kgo.Client, group string) (int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic, topic.Partitions = "orders", []int32{0}
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	topics := resp.Topics
	if len(topics) == 0 || len(topics[0].Partitions) == 0 {
		for _, g := range resp.Groups {
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					return p.Offset, nil
				}
			}
		}
		return -1, nil
	}
	return topics[0].Partitions[0].Offset, nil
}
