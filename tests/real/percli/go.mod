// Builds percli at a fixed version: `go install …@version` asks for a list of versions, which not every proxy has.
module casstat.test/percli

go 1.23.0

require github.com/perses/perses v0.50.0
