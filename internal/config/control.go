package config

// controlListen is where the gateway API is by default.
const controlListen = "127.0.0.1:8083"

// ControlAddress returns the address of the gateway API apart from traffic, or "" if it is
// served on the addresses of traffic. up says whether admin and gateway are one process.
func (g *Gateway) ControlAddress(up bool) string {
	if g.ControlListen == "" && !g.ControlOnTraffic && !up {
		return controlListen
	}
	return g.ControlListen
}

// Alone reports whether the settings are those of a gateway that runs without an admin in
// the same process.
func (g *Gateway) Alone() bool { return g.AdminURL != "" || g.AppsDir != "" }
