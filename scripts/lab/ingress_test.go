package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	hostimage "tare/host/image"
	"tare/workload/ingress/routes"
)

// The routes end TLS in each place once.
func TestRoutes(t *testing.T) {
	inModule(t)
	text, err := os.ReadFile(routesFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := routes.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var ends []string
	for _, r := range list.Targets {
		ends = append(ends, r.Name+" "+r.TLS)
	}
	want := []string{ingressSpace + "/plain none", ingressSpace + "/edge edge", ingressSpace + "/passthrough passthrough", ingressSpace + "/reencrypt reencrypt"}
	if !slices.Equal(ends, want) || len(list.Notes) > 0 {
		t.Errorf("%q, %v", ends, list.Notes)
	}
}

// The recipe of the controller's image is good, and each of its files is there. HAProxy Ingress is not fetched for this test.
func TestControllerRecipe(t *testing.T) {
	inModule(t)
	p, err := newPlaces(cacheDir)
	if err != nil {
		t.Fatal(err)
	}
	kept := p.program(controllerImage)
	recipe, err := (&hostimage.Builder{Recipes: os.DirFS(moduleDir)}).Recipe(controllerImage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Skip("the controller is not built; run make lab LAB=-ingress")
	}
	for _, f := range recipe.Files {
		if _, err := os.Stat(filepath.Join(kept, f.From)); err != nil && f.From != controllerProgram {
			t.Errorf("the recipe names a file that is not kept: %v", err)
		}
	}
}
