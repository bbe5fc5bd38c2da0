package execution
 import ("testing";"time";"fmt")
 func TestX(t *testing.T){
  t0:=time.Now()
  p:=openPool(t,Config{Workers:2})
  fmt.Println("open",time.Since(t0))
  r,err:=p.Run(t.Context(),Program{Code:"import math,os,sys\ndef f(x):\n  if x==2:\n    while True: pass\n  if x==3: os._exit(3)\n  if x==4: sys.exit(2)\n  if x==5: return (i for i in [])\n  return {x:[1.5,'a',None,math.inf,{1,2},()]}\n",EntryPoint:"f"},[]string{"f(0)","f(1)","f(2)","f(3)","f(4)","f(5)","f(6)","g(1)"})
  fmt.Println(err,r.Loads,r.LoadError)
  for _,o:=range r.Outcomes{fmt.Println(o)}
  r,err=p.Run(t.Context(),Program{Code:"x=1/0"},[]string{"f(0)"})
  fmt.Println(err,r)
 }
 func BenchmarkRun(b *testing.B){
  p:=openPool(b,Config{})
  calls:=[]string{}
  for i:=range 8 {calls=append(calls,fmt.Sprintf("f(%d)",i))}
  b.RunParallel(func(pb *testing.PB){ for pb.Next(){
  _,err:=p.Run(b.Context(),Program{Code:"from typing import *\ndef f(x):\n  return [x]*3\n",EntryPoint:"f"},calls)
  if err!=nil{b.Fatal(err)}
  }})
  b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(),"jobs/s")
 }
