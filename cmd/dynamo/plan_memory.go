package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/dynamograph/dynamo/graph/plan"
)

// memoryText says what one replica of each group takes, part by part, a line for each place.
func memoryText(w io.Writer, pl *plan.Plan) {
	places := []struct {
		place plan.Place
		name  string
	}{{plan.OnDevice, "device"}, {plan.InMemory, "memory"}, {plan.Shared, "shared"}, {plan.OnDisk, "disk"}, {plan.DiskCache, "disk, shared"}, {plan.ModelFile, "model"}}
	head := "\nONE REPLICA OF\t\tTAKES\t\t\n"
	for _, g := range pl.Groups {
		for _, at := range places {
			var parts []string
			for _, p := range g.Needs.Parts {
				if p.Place == at.place {
					parts = append(parts, p.String())
				}
			}
			if len(parts) == 0 {
				continue
			}
			name := at.name
			if at.place == plan.OnDevice {
				name = fmt.Sprintf("each of %d %s", g.Needs.Devices, g.Needs.DeviceClass)
			}
			fmt.Fprintf(w, "%s%s\t%s\t%s\t\t\n", head, g.Name, strings.TrimSpace(name), strings.Join(parts, ", "))
			head = ""
		}
	}
}
