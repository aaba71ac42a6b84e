import numpy as np, itertools, sys
from dgrr.runtime.cuda.driver import gpu, KernelNode
from dgrr.runtime.cuda.arguments import CallArguments, Told
from dgrr.runtime.cuda.measure import seconds_of
from dgrr.tape.numerics.cuda import nvrtc
from dgrr.tape.numerics.cuda.tiles import TILES, Tile
from dgrr.tape.ops.linear.cuda.choice import ChosenTile, chosen
from dgrr.tape.ops.linear.cuda.products import launches_of
from dgrr.tape.ops.linear.kernels.product import Product
MORE={
 "s8_1":Tile(16,32,64,2,4,4,1,4,1,1),"s8_k64":Tile(16,32,64,2,4,4,1,4,1,4),
 "m8":Tile(8,32,32,1,4,4,1,4,1,1),"t1":Tile(16,32,32,1,4,4,1,4,1,1),"t1k64":Tile(16,32,64,1,4,4,1,4,1,1),
 "t12":Tile(16,32,64,1,2,4,2,4,1,1),"t22":Tile(16,32,64,2,2,4,2,4,1,1), "t22x4":Tile(16,32,32,2,2,4,2,4,1,4),"t12x4":Tile(16,32,32,1,2,4,2,4,1,4),
 "q16":Tile(16,16,64,1,2,4,1,4,1,1),"q16x4":Tile(16,16,32,1,2,4,1,4,1,4),"q22x4":Tile(16,16,32,2,2,4,1,4,1,4),"q22":Tile(16,16,64,2,2,4,1,4,1,1),
 "q8x4":Tile(8,16,32,1,2,4,1,4,1,4), "h11x4":Tile(8,16,64,1,2,4,1,3,1,4),
}
g=gpu()
def time(words,how,size=4):
    form_launches=launches_of(size,words,how)
    b,m,n,k=words[:4]
    held=[g.allocate(x) for x in (b*m*n*4,b*m*k*4,b*k*n*4,1<<26,8)]
    for h,c in zip(held[:3],(b*m*n,b*m*k,b*k*n)): g.upload(h.address,np.random.default_rng(0).standard_normal(c).astype(np.float32))
    g.upload(held[4].address,np.full(1,2**64-1,np.uint64))
    places=[held[0].address,held[1].address,held[2].address,0,held[3].address]
    nodes=[]
    for l in form_launches:
        call=CallArguments.of(l,places)
        f=g.function(nvrtc.compiled(l.source,l.defines,g.arch),l.entry,l.shared)
        nodes.append(KernelNode(f,l.grid,l.block,l.shared,[call,Told(held[4].address,0)],()))
    return seconds_of(g,nodes,50)*1e6
SHAPES=[((1,32,1024,256),'NT'),((1,32,256,1024),'NN'),((1,1024,256,32),'TN'),((1,1024,64,64),'NN'),((1,64,64,1024),'TN'),((1,1024,256,64),'NN'),((1,1024,64,256),'NN'),((1,2048,384,384),'NN'),((1,2048,1536,384),'NN'),((1,2048,384,1536),'NN'),((1,384,384,2048),'TN'),((1,384,1536,2048),'TN')]
for (b,m,n,k),lay in SHAPES:
    sa=(4*k,4) if lay[0]=='N' else (4,4*m)
    sb=(4*n,4) if lay[1]=='N' else (4,4*k)
    words=tuple(int(w) for w in Product(b,m,n,k,4).words((sa,sb)).values)
    base=chosen(4,words); out=[]
    try: out.append((time(words,base),'chosen:'+next(x for x,t in TILES[4].items() if t==base.tile)+f' {base.each}'))
    except Exception as e: print(e)
    for name,t in (MORE if m<=1024 and n<=1024 and m*n*k<=1<<27 else {}).items():
        try: out.append((time(words,ChosenTile(t,0,False)),name))
        except Exception as e: print(name,str(e)[-200:].replace('\n',' '))
    for name in ('half','low','small','slices','slices16','slices8','thin','flat','tall','wide'):
        if m*n*k<=1<<27 or name in ('half','low','thin','flat','tall','wide','slices'):
            out.append((time(words,ChosenTile(TILES[4][name],0,False)),name))
    if k>256:
        for e in (1,2,4):
            for nm in ('flat','tall','split','thin','half'):
                if e*256<k: out.append((time(words,ChosenTile(TILES[4][nm],e,False)),f'{nm}/{e}'))
    print((b,m,n,k),lay,'; '.join(f'{n} {t:.1f}' for t,n in sorted(out)[:9]), '|', out[0][1], round(out[0][0],1), flush=True)
