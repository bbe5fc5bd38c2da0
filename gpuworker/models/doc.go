// Package models is the models of a run in one process.
//
// It owns the choice of the engine that computes a role's model (open.go, set.go) or of
// the server that has it (server.go), the check that the models fit into this machine
// (fit.go), version 0 of each model and its copies in a store (store.go), and the stages
// that sample from the models and train them (stages.go, retrain.go).
//
// It must not know how an engine computes: the packages tiny, torch and openai do. It
// must not know the other settings of a run: package main gives it a Config.
//
// Start reading at config.go, then set.go.
package models
