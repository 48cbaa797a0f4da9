package site

func referenceRoutes() []route { return nil }

func samplesOf(r *request) []sample { return nil }
