{ SPDX-License-Identifier: MIT }
{ Nested procedures, exceptions, dynamic strings, virtual methods. }
program work;
{$mode objfpc}{$H+}
uses cthreads, SysUtils; { cthreads: the program is linked dynamically }

type
  TShape = class
    function Area: Int64; virtual; abstract;
  end;
  TSquare = class(TShape)
    Side: Int64;
    constructor Create(ASide: Int64);
    function Area: Int64; override;
  end;

constructor TSquare.Create(ASide: Int64);
begin
  Side := ASide;
end;

function TSquare.Area: Int64;
begin
  Result := Side * Side;
end;

function Outer(A, B, C, D, E, F, G, H, I: Int64): Int64;
var
  Total: Int64;

  procedure Add(Depth: Integer);

    procedure Deep;
    begin
      Total := Total + G * H + I + Depth;
    end;

  begin
    Deep;
    if Depth > 0 then
      Add(Depth - 1);
  end;

begin
  Total := A + B + C + D + E + F;
  Add(3);
  Result := Total;
end;

function Half(N: Int64): Int64;
begin
  if Odd(N) then
    raise Exception.Create('odd ' + IntToStr(N));
  Result := N div 2;
end;

var
  N: Integer;
  Total: Int64;
  Text: string;
  Shape: TShape;
begin
  Total := 0;
  Text := '';
  for N := 1 to 3000 do
  begin
    Total := Total + Outer(1, 2, 3, 4, 5, 6, N, 8, 9);
    Shape := TSquare.Create(N);
    Total := Total + Shape.Area;
    Shape.Free;
    try
      Total := Total + Half(N);
    except
      on Oops: Exception do
        Text := Text + Oops.Message[1];
    end;
  end;
  WriteLn(Total, ' ', Length(Text));
end.
