// Package sandboxtest helps the tests of this folder. It does not import package
// sandbox, so that sandbox's own tests can use it.
package sandboxtest
