package words

// PerOperation writes how many calls an operation makes.
func PerOperation(n float64) string { return digits(n) }
