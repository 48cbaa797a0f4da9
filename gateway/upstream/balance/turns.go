package balance

// turnsOf returns one round of turns in which each index stands as often as its
// weight says, as evenly spread as can be: every step all weights are added up,
// and whoever has the most gets the turn and pays for the round. All weights are
// at least 0, and one is more.
func turnsOf(weights []int) []uint16 {
	common, all := 0, 0
	for _, w := range weights {
		common = divisor(common, w)
	}
	for _, w := range weights {
		all += w / common
	}
	turns := make([]uint16, 0, all)
	have := make([]int, len(weights))
	for range all {
		most := -1
		for i, w := range weights {
			if w == 0 {
				continue
			}
			have[i] += w / common
			if most < 0 || have[i] > have[most] {
				most = i
			}
		}
		have[most] -= all
		turns = append(turns, uint16(most))
	}
	return turns
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
