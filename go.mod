module tare

go 1.26.0
