import numpy as np
from dataclasses import replace
from dgrr.runtime.cuda.driver import gpu, KernelNode
from dgrr.runtime.cuda.arguments import CallArguments, Told
from dgrr.runtime.cuda.measure import seconds_of
from dgrr.tape.numerics.cuda import nvrtc
from dgrr.tape.ops.cuda_forms import FORMS
from dgrr.tape.ops.norm import cuda as cn
from dgrr.tape.numerics.engine.launch import Words
g=gpu(); f32=np.dtype(np.float32)
def time(name,rows,seg,length,shared=0,threads=0):
    n=rows*seg*length
    grad=name!='normalize'
    words=(rows,length,seg,length,rows*length,1,0,rows,0 if name=='normalize_weight_grad' else (3 if grad else 2),1,1e-5)+((3,) if not grad else ())
    words=tuple(Words(*words).values.tolist())
    form=FORMS[name]; ls=form.launches(f32,words)
    if shared: ls=[replace(l,shared=max(l.shared,shared)) for l in ls]
    bufs=[g.allocate(4*n) for _ in range(3)]+[g.allocate(4*rows) for _ in range(2)]+[g.allocate(form.scratch(f32,words)+256),g.allocate(8)]
    for b in bufs[:3]: g.upload(b.address,np.random.default_rng(0).standard_normal(n).astype(np.float32))
    for b in bufs[3:5]: g.upload(b.address,np.ones(rows,np.float32))
    g.upload(bufs[6].address,np.full(1,2**64-1,np.uint64))
    a=[b.address for b in bufs]
    table=[a[0],a[1],a[3],a[4]] if not grad else [a[0],a[1],a[2],a[3]]
    places=[*table,0,a[5]]
    nodes=[]
    for l in ls:
        call=CallArguments.of(l,places)
        fn=g.function(nvrtc.compiled(l.source,l.defines,g.arch),l.entry,l.shared)
        nodes.append(KernelNode(fn,l.grid,l.block,l.shared,[call,Told(a[6],0)],()))
    return seconds_of(g,nodes,50)*1e6
for shape in ((16,32,1024),(32,32,256),(64,32,64),(32,32,1024),(64,32,256),(64,32,1024)):
    for name in ('normalize','normalize_grad','normalize_weight_grad'):
        out=[]
        cn.CLUSTER=1; cn._fills_clusters=lambda w:False; out.append(f'parts {time(name,*shape):.1f}')
        for c in (8,4,2):
            cn.CLUSTER=c; cn._fills_clusters=lambda w:True
            for sh in (0,75<<10,116<<10): out.append(f'c{c}/{sh>>10} {time(name,*shape,sh):.1f}')
        cn._fills_clusters=lambda w: cn.CLUSTER>1
        print(shape,name,'; '.join(out),flush=True)
